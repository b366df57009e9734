
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// Sets y[q] to the index of the first greatest element. NaN is ignored; if all are NaN, the index
// is 0.
fn each(q: u32) {
    let start = p.x + q / p.inner * p.extent * p.inner + q % p.inner;
    var place = 0u;
    var best = x[start];
    for (var e = 1u; e < p.extent; e++) {
        let value = x[start + e * p.inner];
        if value > best || (is_nan(best) && !is_nan(value)) {
            best = value;
            place = e;
        }
    }
    y[p.y + q] = place;
}
