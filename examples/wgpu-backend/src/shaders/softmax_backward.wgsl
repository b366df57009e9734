
fn each(q: u32) {
    let start = q / p.inner * p.extent * p.inner + q % p.inner;
    let end = start + p.extent * p.inner;
    var dot = 0.0;
    for (var i = start; i < end; i += p.inner) {
        dot += source(i) * y[p.y + i];
    }
    for (var i = start; i < end; i += p.inner) {
        dx[p.dx + i] = (source(i) - dot) * y[p.y + i];
    }
}
