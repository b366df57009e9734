
// Computes y = x · s^(−β), where s = k + α/n · Σ x² over the region of an element.
fn term(i: u32) -> f32 {
    return x[p.x + i] * x[p.x + i];
}

fn each(i: u32) {
    let s = p.k + p.factor * sum_region(i);
    scale[p.scale + i] = s;
    y[p.y + i] = x[p.x + i] * pow_neg_beta(s);
}
