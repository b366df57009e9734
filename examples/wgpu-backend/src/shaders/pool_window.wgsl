
// The window of an output element: its plane, its bounds within the plane, and its size with
// padding.
struct Window {
    plane: u32,
    top: u32,
    bottom: u32,
    left: u32,
    right: u32,
    size: f32,
}

fn window(i: u32) -> Window {
    let row = i / p.across % p.down * p.stride_h;
    let column = i % p.across * p.stride_w;
    // `last_row` and `last_column` count from the start of the padding. A window that starts beyond
    // the padding gets a negative extent.
    let last_row = min(row + p.kernel_h, p.height + 2u * p.pad_h);
    let last_column = min(column + p.kernel_w, p.width + 2u * p.pad_w);
    let rows = f32(i32(last_row) - i32(row));
    let columns = f32(i32(last_column) - i32(column));
    return Window(
        i / p.across / p.down,
        max(row, p.pad_h) - p.pad_h,
        min(max(row + p.kernel_h, p.pad_h) - p.pad_h, p.height),
        max(column, p.pad_w) - p.pad_w,
        min(max(column + p.kernel_w, p.pad_w) - p.pad_w, p.width),
        rows * columns,
    );
}
