
// Computes parts[z] = dy · (im2col matrix)ᵀ for group z mod GROUPS, over chunk z / GROUPS of the
// positions of all images.
fn load_a(z: u32, row: u32, k: u32) -> f32 {
    let plane = (k / POSITIONS * GROUPS + z % GROUPS) * OUTPUTS + row;
    return dy[p.dy + plane * POSITIONS + k % POSITIONS];
}

fn load_b(z: u32, k: u32, column: u32) -> f32 {
    let at = place(column, k % POSITIONS);
    if at == NOWHERE {
        return 0.0;
    }
    return x[p.x + k / POSITIONS * IMAGE + z % GROUPS * CHANNELS * PLANE + at];
}

fn store(z: u32, row: u32, column: u32, sum: f32) {
    parts[p.parts + (z * p.rows + row) * p.columns + column] = sum;
}

fn k_start(z: u32) -> u32 {
    return z / GROUPS * p.chunk;
}

fn k_end(z: u32) -> u32 {
    return min((z / GROUPS + 1u) * p.chunk, p.k);
}
