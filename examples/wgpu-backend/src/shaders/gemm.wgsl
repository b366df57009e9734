
// Tiled GEMM. A workgroup computes a tile of 4·DOWN by 4·ACROSS elements; each thread of the
// workgroup sums 4 by 4 elements in registers. The workgroup copies 16 columns of A and 16 rows of
// B at a time into workgroup memory.
//
// The shader that uses this file defines `load_a(z, row, k)`, `load_b(z, k, column)` and `store(z,
// row, column, sum)` for GEMM `z`. This file calls them only for elements of the operands. The
// shader also defines the range of k, from `k_start(z)` to `k_end(z)`, and whether A and B are
// contiguous along k: A_ALONG_K and B_ALONG_K.

const ROWS = 4u * DOWN;
const COLUMNS = 4u * ACROSS;
const THREADS = DOWN * ACROSS;

var<workgroup> tile_a: array<vec4<f32>, 16u * DOWN>;
var<workgroup> tile_b: array<vec4<f32>, 16u * ACROSS>;

@compute @workgroup_size(THREADS)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let across = (p.columns + COLUMNS - 1u) / COLUMNS;
    let down = (p.rows + ROWS - 1u) / ROWS;
    let top = lane / ACROSS;
    let left = lane % ACROSS;
    for (var tile = group.x; tile < p.n; tile += groups.x) {
        let column = tile % across * COLUMNS;
        let row = tile / across % down * ROWS;
        let z = tile / across / down;
        let end = k_end(z);
        var sum0 = vec4(0.0);
        var sum1 = vec4(0.0);
        var sum2 = vec4(0.0);
        var sum3 = vec4(0.0);
        for (var k = k_start(z); k < end; k += 16u) {
            for (var s = lane; s < 16u * ROWS; s += THREADS) {
                let i = select(s % ROWS, s / 16u, A_ALONG_K);
                let j = select(s / ROWS, s % 16u, A_ALONG_K);
                var a = 0.0;
                if row + i < p.rows && k + j < end {
                    a = load_a(z, row + i, k + j);
                }
                tile_a[j * DOWN + i / 4u][i % 4u] = a;
            }
            for (var s = lane; s < 16u * COLUMNS; s += THREADS) {
                let i = select(s / COLUMNS, s % 16u, B_ALONG_K);
                let j = select(s % COLUMNS, s / 16u, B_ALONG_K);
                var b = 0.0;
                if k + i < end && column + j < p.columns {
                    b = load_b(z, k + i, column + j);
                }
                tile_b[i * ACROSS + j / 4u][j % 4u] = b;
            }
            workgroupBarrier();
            for (var i = 0u; i < 16u; i++) {
                let a = tile_a[i * DOWN + top];
                let b = tile_b[i * ACROSS + left];
                sum0 += a.x * b;
                sum1 += a.y * b;
                sum2 += a.z * b;
                sum3 += a.w * b;
            }
            workgroupBarrier();
        }
        store_four(z, row + 4u * top, column + 4u * left, sum0);
        store_four(z, row + 4u * top + 1u, column + 4u * left, sum1);
        store_four(z, row + 4u * top + 2u, column + 4u * left, sum2);
        store_four(z, row + 4u * top + 3u, column + 4u * left, sum3);
    }
}

fn store_four(z: u32, row: u32, column: u32, sums: vec4<f32>) {
    if row >= p.rows {
        return;
    }
    if column < p.columns {
        store(z, row, column, sums.x);
    }
    if column + 1u < p.columns {
        store(z, row, column + 1u, sums.y);
    }
    if column + 2u < p.columns {
        store(z, row, column + 2u, sums.z);
    }
    if column + 3u < p.columns {
        store(z, row, column + 3u, sums.w);
    }
}
