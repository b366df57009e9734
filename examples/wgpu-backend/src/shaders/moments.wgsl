
var<workgroup> parts: array<vec2<f32>, 256>;

// Returns Σ (x − origin) and Σ (x − origin)² over the elements at position e of the axis.
fn centred_sums(lane: u32, e: u32, origin: f32) -> vec2<f32> {
    var sum = vec2(0.0, 0.0);
    for (var t = lane; t < p.outer * p.inner; t += 256u) {
        let at = (t / p.inner * p.extent + e) * p.inner + t % p.inner;
        let d = x[p.x + at] - origin;
        sum += vec2(d, d * d);
    }
    parts[lane] = sum;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            parts[lane] += parts[lane + half];
        }
    }
    workgroupBarrier();
    let total = parts[0];
    workgroupBarrier();
    return total;
}

// A workgroup computes the mean at a position from differences to the first element there. A second
// pass sums differences to the mean, which gives the variance and corrects the mean's rounding
// error.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let m = f32(p.outer * p.inner);
    for (var e = group.x; e < p.n; e += groups.x) {
        let origin = x[p.x + e * p.inner];
        let middle = origin + centred_sums(lane, e, origin).x / m;
        let sums = centred_sums(lane, e, middle);
        if lane == 0u {
            let shift = sums.x / m;
            mean[p.mean + e] = middle + shift;
            variance[p.variance + e] = sums.y / m - shift * shift;
        }
    }
}
