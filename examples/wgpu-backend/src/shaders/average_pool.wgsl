
fn each(i: u32) {
    let w = window(i);
    var sum = 0.0;
    for (var row = w.top; row < w.bottom; row++) {
        for (var column = w.left; column < w.right; column++) {
            sum += x[p.x + (w.plane * p.height + row) * p.width + column];
        }
    }
    y[p.y + i] = sum / w.size;
}
