
fn each(i: u32) {
    let at = i / p.inner / p.extent * p.inner + i % p.inner;
    let class_ = class_of(at);
    var value = x[p.x + i];
    if class_ == i32(i / p.inner % p.extent) {
        value -= 1.0;
    }
    let factor = scale[p.scale] / divided_by[p.divided_by];
    y[p.y + i] = select(value * factor, 0.0, class_ == IGNORED);
}
