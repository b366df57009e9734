
// A thread computes the softmax along the axis at one position of the other axes.
fn each(q: u32) {
    let start = q / p.inner * p.extent * p.inner + q % p.inner;
    let end = start + p.extent * p.inner;
    var peak = from_bits(INFINITY_BITS | 0x80000000u);
    for (var i = start; i < end; i += p.inner) {
        let value = source(i);
        peak = select(peak, value, value > peak);
    }
    var sum = 0.0;
    for (var i = start; i < end; i += p.inner) {
        let e = exponential(source(i) - peak);
        sum += e;
        y[p.y + i] = e;
    }
    for (var i = start; i < end; i += p.inner) {
        y[p.y + i] = y[p.y + i] / sum;
    }
}
