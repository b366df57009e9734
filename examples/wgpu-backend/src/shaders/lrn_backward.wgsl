
// Computes dx = dy · s^(−β) − 2αβ/n · x · Σ dy·y/s.
fn term(i: u32) -> f32 {
    return dy[p.dy + i] * y[p.y + i] / scale[p.scale + i];
}

fn each(i: u32) {
    let own = dy[p.dy + i] * pow_neg_beta(scale[p.scale + i]);
    dx[p.dx + i] = own - 2.0 * p.beta * p.factor * x[p.x + i] * sum_region(i);
}
