
// Returns the half-open range of the windows, of `count` along an axis, that cover element `at`.
fn windows_covering(at: u32, kernel: u32, stride: u32, count: u32) -> vec2<u32> {
    let first = select((at - kernel) / stride + 1u, 0u, at < kernel);
    return vec2(first, min(at / stride + 1u, count));
}

// Sets each element of dx to the sum of dy / window size over all windows that contain the element.
fn each(i: u32) {
    let plane = i / p.width / p.height;
    let rows = windows_covering(i / p.width % p.height + p.pad_h, p.kernel_h, p.stride_h, p.down);
    let columns = windows_covering(i % p.width + p.pad_w, p.kernel_w, p.stride_w, p.across);
    var sum = 0.0;
    for (var row = rows.x; row < rows.y; row++) {
        for (var column = columns.x; column < columns.y; column++) {
            let at = (plane * p.down + row) * p.across + column;
            sum += dy[p.dy + at] / window(at).size;
        }
    }
    dx[p.dx + i] = sum;
}
