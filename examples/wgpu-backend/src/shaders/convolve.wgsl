
// Computes y = filters · im2col matrix of all images by implicit GEMM, with one GEMM per group.
fn load_a(z: u32, row: u32, k: u32) -> f32 {
    return filters[p.filters + (z * OUTPUTS + row) * p.k + k];
}

fn load_b(z: u32, k: u32, column: u32) -> f32 {
    let at = place(k, column % POSITIONS);
    if at == NOWHERE {
        return 0.0;
    }
    return x[p.x + column / POSITIONS * IMAGE + z * CHANNELS * PLANE + at];
}

fn store(z: u32, row: u32, column: u32, sum: f32) {
    let plane = z * OUTPUTS + row;
    let image = column / POSITIONS * GROUPS * OUTPUTS;
    y[p.y + (image + plane) * POSITIONS + column % POSITIONS] = sum + bias_of(plane);
}

fn k_start(z: u32) -> u32 {
    return 0u;
}

fn k_end(z: u32) -> u32 {
    return p.k;
}
