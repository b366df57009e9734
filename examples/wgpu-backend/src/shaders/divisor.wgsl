
fn of_label(at: u32, class_: u32) -> vec2<f32> {
    return vec2(0.0, 1.0);
}

fn result(sum: f32, count: f32) -> f32 {
    return max(select(p.divisor, count, p.divisor == 0.0), 1.0);
}
