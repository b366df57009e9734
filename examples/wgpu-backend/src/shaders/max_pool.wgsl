
// The first that is greater than the least finite value, and than all before it.
fn each(i: u32) {
    let w = window(i);
    var best = -0x1.fffffep+127f;
    var place = -1;
    for (var row = w.top; row < w.bottom; row++) {
        for (var column = w.left; column < w.right; column++) {
            let at = row * p.width + column;
            let value = x[p.x + w.plane * p.height * p.width + at];
            if value > best {
                best = value;
                place = i32(at);
            }
        }
    }
    y[p.y + i] = best;
    mask[p.mask + i] = place;
}
