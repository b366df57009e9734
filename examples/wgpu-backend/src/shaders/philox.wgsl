
// Returns the lower and the upper 32 bits of a · b.
fn times(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    return vec2(a * b, (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u));
}

// Philox4x32-10 generator: element i is f(word i mod 4 of counter i / 4).
fn each(i: u32) {
    var counter = vec4(i / 4u, 0u, p.stream_low, p.stream_high);
    var key = vec2(p.seed_low, p.seed_high);
    for (var round = 0u; round < 10u; round++) {
        let first = times(counter.x, 0xd2511f53u);
        let second = times(counter.z, 0xcd9e8d57u);
        counter = vec4(second.y ^ counter.y ^ key.x, second.x, first.y ^ counter.w ^ key.y, first.x);
        key += vec2(0x9e3779b9u, 0xbb67ae85u);
    }
    y[p.y + i] = f(counter[i % 4u]);
}
