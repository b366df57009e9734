
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

var<private> best: f32;
var<private> place: u32;

// Compares element `e` of the axis, if it exists, with the greatest element so far.
fn compare(start: u32, e: u32) {
    if e < p.extent {
        let value = x[start + e * p.inner];
        if value > best || (is_nan(best) && !is_nan(value)) {
            best = value;
            place = e;
        }
    }
}

fn compare_4(start: u32, e: u32) {
    compare(start, e);
    compare(start, e + 1u);
    compare(start, e + 2u);
    compare(start, e + 3u);
}

fn compare_16(start: u32, e: u32) {
    compare_4(start, e);
    compare_4(start, e + 4u);
    compare_4(start, e + 8u);
    compare_4(start, e + 12u);
}

// Sets y[q] to the index of the first greatest element. NaN is ignored; if all are NaN, the index
// is 0. An iteration compares 64 elements, because Mesa's llvmpipe ends a thread's loops after
// 65,535 iterations without an error.
fn each(q: u32) {
    let start = p.x + q / p.inner * p.extent * p.inner + q % p.inner;
    place = 0u;
    best = x[start];
    for (var e = 0u; e < p.extent; e += 64u) {
        compare_16(start, e);
        compare_16(start, e + 16u);
        compare_16(start, e + 32u);
        compare_16(start, e + 48u);
    }
    y[p.y + q] = place;
}
