
// Returns s^(−β) for s > 0. For β = ¾, it computes square roots, which are more accurate.
fn pow_neg_beta(s: f32) -> f32 {
    if p.beta == 0.75 {
        return 1.0 / (sqrt(s) * sqrt(sqrt(s)));
    }
    return exponential(-p.beta * logarithm(s));
}

fn first(at: u32) -> u32 {
    return max(at, p.half) - p.half;
}

// Returns the sum of `term` over the region around element `i`.
fn sum_region(i: u32) -> f32 {
    let plane = p.height * p.width;
    var sum = 0.0;
    if WITHIN {
        let start = i / plane * plane;
        let row = i / p.width % p.height;
        let column = i % p.width;
        for (var r = first(row); r < min(row + p.half + 1u, p.height); r++) {
            for (var c = first(column); c < min(column + p.half + 1u, p.width); c++) {
                sum += term(start + r * p.width + c);
            }
        }
    } else {
        let channel = i / plane % p.channels;
        let start = i - channel * plane;
        for (var c = first(channel); c < min(channel + p.half + 1u, p.channels); c++) {
            sum += term(start + c * plane);
        }
    }
    return sum;
}
