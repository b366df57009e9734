
fn each(i: u32) {
    let w = weights[p.weights + i];
    let sign = select(select(0.0, -1.0, w < 0.0), 1.0, w > 0.0);
    let g = p.scale * dw[p.dw + i] + p.decay * select(w, sign, p.l1 == 1u);
    let h = p.momentum * history[p.history + i] + p.rate * g;
    history[p.history + i] = h;
    weights[p.weights + i] = w - h;
}
