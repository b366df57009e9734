
// A label is correct if at most `top_k` scores, including the label's score, are at least as great
// as the label's score. If the label's score is NaN, `ahead` is 0 and the label is incorrect.
fn of_label(at: u32, class_: u32) -> vec2<f32> {
    let start = p.x + first_score(at);
    let own = x[start + class_ * p.inner];
    var ahead = 0u;
    for (var i = 0u; i < p.extent; i++) {
        ahead += select(0u, 1u, x[start + i * p.inner] >= own);
    }
    return vec2(select(0.0, 1.0, ahead > 0u && ahead <= p.top_k), 1.0);
}

fn result(right: f32, count: f32) -> f32 {
    return right / max(count, 1.0);
}
