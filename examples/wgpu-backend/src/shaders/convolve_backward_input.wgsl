
// Sets each element of dx to the sum of filter element · dy over all taps and filters of its group
// that read the element.
fn load_a(z: u32, row: u32, k: u32) -> f32 {
    let filter_ = z * OUTPUTS + k / TAPS;
    return filters[p.filters + (filter_ * CHANNELS + row) * TAPS + k % TAPS];
}

fn load_b(z: u32, k: u32, column: u32) -> f32 {
    let at = position(k % TAPS, column % PLANE);
    if at == NOWHERE {
        return 0.0;
    }
    let plane = (column / PLANE * GROUPS + z) * OUTPUTS + k / TAPS;
    return dy[p.dy + plane * POSITIONS + at];
}

fn store(z: u32, row: u32, column: u32, sum: f32) {
    let image = column / PLANE * IMAGE;
    dx[p.dx + image + (z * CHANNELS + row) * PLANE + column % PLANE] = sum;
}

fn k_start(z: u32) -> u32 {
    return 0u;
}

fn k_end(z: u32) -> u32 {
    return p.k;
}
