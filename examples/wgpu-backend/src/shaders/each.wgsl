
@compute @workgroup_size(256)
fn main(
    @builtin(global_invocation_id) thread: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var i = thread.x; i < p.n; i += groups.x * 256u) {
        each(i);
    }
}
