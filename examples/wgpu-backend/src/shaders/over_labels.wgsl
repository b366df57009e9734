
var<workgroup> parts: array<vec2<f32>, 256>;

// Sums `of_label` over the labels: each lane sums a share, and a tree combines the lanes.
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = vec2(0.0, 0.0);
    for (var at = lane; at < p.n; at += 256u) {
        let class_ = class_of(at);
        if class_ >= 0 {
            sum += of_label(at, u32(class_));
        } else if class_ != IGNORED {
            atomicMax(&error_flags[p.error_flags], ~at);
        }
    }
    parts[lane] = sum;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            parts[lane] += parts[lane + half];
        }
    }
    if lane == 0u {
        y[p.y] = result(parts[0].x, parts[0].y);
    }
}
