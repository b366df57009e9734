
fn of_label(at: u32, class_: u32) -> vec2<f32> {
    let tiny = bitcast<f32>(0x00800000u);
    let share = x[p.x + first_score(at) + class_ * p.inner];
    // A comparison of bits, because a shader compiler may assume that no value is NaN.
    if (bitcast<u32>(share) & 0x7fffffffu) > 0x7f800000u {
        return vec2(share, 1.0);
    }
    return vec2(-logarithm(max(share, tiny)), 1.0);
}

fn result(sum: f32, count: f32) -> f32 {
    return sum / max(select(p.divisor, count, p.divisor == 0.0), 1.0);
}
