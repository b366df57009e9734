
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// The first greatest; NaN is passed over, and 0 where there is nothing else.
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
