
var<workgroup> parts: array<f32, 256>;

// A workgroup reduces a chunk of an output's items. Each lane reduces a share, and a tree combines
// the lanes.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var w = group.x; w < p.n; w += groups.x) {
        let start = w % p.splits * p.chunk;
        let end = min(start + p.chunk, p.items);
        var sum = identity();
        for (var t = start + lane; t < end; t += 256u) {
            sum = combine(sum, term(w / p.splits, t));
        }
        parts[lane] = sum;
        for (var half = 128u; half > 0u; half /= 2u) {
            workgroupBarrier();
            if lane < half {
                parts[lane] = combine(parts[lane], parts[lane + half]);
            }
        }
        if lane == 0u {
            store(w, parts[0]);
        }
        workgroupBarrier();
    }
}
