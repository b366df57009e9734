
// Sets an element of y to the sum of all elements of the im2col matrix that im2col copies from it.
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
