
// y = the sum of the column elements that the kernel's taps read from this element of the image.
fn each(i: u32) {
    let start = p.x + i / PLANE * TAPS * POSITIONS;
    var sum = 0.0;
    for (var tap = 0u; tap < TAPS; tap++) {
        let at = position(tap, i % PLANE);
        if at != NOWHERE {
            sum += x[start + tap * POSITIONS + at];
        }
    }
    y[p.y + i] = sum;
}
