
// Elementary functions, accurate to a few ulp. WGSL's built-in functions may be far less accurate,
// and need not handle NaN and infinity.

const INFINITY_BITS = 0x7f800000u;

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > INFINITY_BITS;
}

// Returns the float with these bits. WGSL rejects infinity and NaN in constant expressions, but not
// in function calls.
fn from_bits(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

// Returns 2ⁿ for −126 ≤ n ≤ 127.
fn exp2i(n: i32) -> f32 {
    return bitcast<f32>(u32(n + 127) << 23u);
}

// The sum of these two constants is ln 2. The first constant has few bits, so its products with
// small integers are exact.
const LN2_HIGH = 0.693359375;
const LN2_LOW = -0.00021219444;

// Returns eʳ − 1 for |r| ≤ ln 2 / 2, by the power series up to r⁸.
fn exp_less_one(r: f32) -> f32 {
    let tail = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r / 40320.0)));
    return r + r * r * (0.5 + r * (1.0 / 6.0 + r * tail));
}

fn exponential(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    if x > 88.8 {
        return from_bits(INFINITY_BITS);
    }
    if x < -104.0 {
        return 0.0;
    }
    let n = floor(x * 1.442695 + 0.5);
    let e = 1.0 + exp_less_one((x - n * LN2_HIGH) - n * LN2_LOW);
    // The result is multiplied by 2ⁿ in two factors, because 2ⁿ itself may overflow or be
    // subnormal.
    let half = i32(n) / 2;
    return e * exp2i(half) * exp2i(i32(n) - half);
}

// A positive finite number x = m·2ᵉ, with m between √½ and √2.
struct Parts {
    m: f32,
    e: f32,
}

fn parts_of(x: f32) -> Parts {
    var bits = bitcast<u32>(x);
    var exponent = -127;
    if bits < 0x00800000u {
        let shift = countLeadingZeros(bits) - 8u;
        bits <<= shift;
        exponent -= i32(shift);
    }
    exponent += i32(bits >> 23u);
    let m = bitcast<f32>((bits & 0x007fffffu) | 0x3f800000u);
    if m > 1.4142135 {
        return Parts(0.5 * m, f32(exponent + 1));
    }
    return Parts(m, f32(exponent));
}

// Returns ln(m·2ᵉ), with ln(1 + f) = f − f²/2 + s·(f²/2 + r) with s = f/(2 + f), r = 2·(s²/3 + s⁴/5
// + …).
fn ln_of(x: Parts) -> f32 {
    let f = x.m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * 2.0 / 11.0))));
    let square = 0.5 * f * f;
    return x.e * LN2_HIGH - ((square - (s * (square + r) + x.e * LN2_LOW)) - f);
}

fn logarithm(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits << 1u) == 0u {
        return from_bits(INFINITY_BITS | 0x80000000u);
    }
    if bits >= INFINITY_BITS {
        // The logarithms of NaN and infinity are NaN and infinity; the logarithm of a negative
        // number is NaN.
        return from_bits(select(bits, 0x7fc00000u, bits > 0x80000000u));
    }
    return ln_of(parts_of(x));
}

// Returns aᵖ for a positive finite a and |p| ≤ 16. With a = m·2ᵉ, the result is 2ⁿ · exp((p·e −
// n)·ln 2 + p·ln m), where n is the integer nearest to p·e.
fn power_of(a: f32, p: f32) -> f32 {
    let x = parts_of(a);
    // `high` and `p - high` have few bits, so their products with e, a small integer, are exact.
    let high = bitcast<f32>(bitcast<u32>(p) & 0xfffff000u);
    let n = floor(p * x.e + 0.5);
    let rest = (high * x.e - n) + (p - high) * x.e;
    let y = exponential(rest * 0.6931472 + p * ln_of(Parts(x.m, 0.0)));
    let whole = i32(clamp(n, -252.0, 252.0));
    return y * exp2i(whole / 2) * exp2i(whole - whole / 2);
}

// Returns xᵖ; `integer` is 1 if p is an odd integer, 2 if p is an even integer, and else 0.
fn power(x: f32, p: f32, integer: f32) -> f32 {
    if p == 0.0 || x == 1.0 {
        return 1.0;
    }
    if is_nan(x) {
        return x;
    }
    let a = abs(x);
    var y = from_bits(select(0u, INFINITY_BITS, (a > 1.0) == (p > 0.0)));
    if a > 0.0 && bitcast<u32>(a) != INFINITY_BITS {
        if x < 0.0 && integer == 0.0 {
            return from_bits(0x7fc00000u);
        }
        y = power_of(a, p);
    }
    let negative = integer == 1.0 && (bitcast<u32>(x) >> 31u) == 1u;
    return select(y, -y, negative);
}

fn hyperbolic_tangent(x: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    let a = 2.0 * abs(x);
    var y = 1.0;
    if a < 20.0 {
        // The result is based on tanh |x| = t / (t + 2) with t = e²ˣ − 1 = 2ⁿ·(eʳ − 1) + (2ⁿ − 1).
        let n = floor(a * 1.442695 + 0.5);
        let two = exp2i(i32(n));
        let t = two * exp_less_one((a - n * LN2_HIGH) - n * LN2_LOW) + (two - 1.0);
        y = t / (t + 2.0);
    }
    return select(y, -y, x < 0.0);
}

fn sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exponential(-x));
}
