
fn each(i: u32) {
    let at = place(i / POSITIONS, i % POSITIONS);
    var value = 0.0;
    if at != NOWHERE {
        value = x[p.x + at];
    }
    y[p.y + i] = value;
}
