
// One thread computes a whole plane of dx, because a mask may point to any element of the plane.
// The shader ignores masks outside the plane, such as −1.
fn each(plane: u32) {
    let from_ = p.height * p.width;
    let to = p.down * p.across;
    let start = p.dx + plane * from_;
    for (var i = 0u; i < from_; i++) {
        dx[start + i] = 0.0;
    }
    for (var i = plane * to; i < (plane + 1u) * to; i++) {
        let place = mask[p.mask + i];
        if place >= 0 && u32(place) < from_ {
            dx[start + u32(place)] += dy[p.dy + i];
        }
    }
}
