
// Sets y to the maximum of the window, but at least the lowest finite value. Sets the mask to the
// first index of the maximum, or to −1 if no element is greater than the lowest finite value.
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
