
// One thread folds all items of an output.
fn each(q: u32) {
    var sum = unit();
    for (var t = 0u; t < p.items; t++) {
        sum = join(sum, term(q, t));
    }
    store(q, sum);
}
