
// Reduces all items of output q in one thread.
fn each(q: u32) {
    var sum = identity();
    for (var t = 0u; t < p.items; t++) {
        sum = combine(sum, term(q, t));
    }
    store(q, sum);
}
