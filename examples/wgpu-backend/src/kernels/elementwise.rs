//! Elementwise kernels with one operand and with two operands.

use super::{float, source_function};
use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Element, Result, Src, View, ViewMut,
    error::check_len,
    kernel::{Elementwise, fallback},
    op::{Axis, Binary, Unary},
};

const MATH: &str = include_str!("../shaders/math.wgsl");

const FILL: Kernel = Kernel {
    name: "fill",
    reads: &[],
    writes: &["y"],
    scalars: &["value: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = p.value; }", EACH],
};

const UNARY: Kernel = Kernel {
    name: "unary",
    reads: &["x"],
    writes: &["y"],
    scalars: &["a: f32", "b: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = f(source(i)); }", MATH, EACH],
};

const UNARY_IN_PLACE: Kernel = Kernel { name: "unary in place", reads: &[], ..UNARY };

const BINARY: Kernel = Kernel {
    name: "binary",
    reads: &["a", "b"],
    writes: &["y"],
    // `b` is broadcast: each element of `b` is repeated `inner` times, and the whole operand `b` is
    // repeated for each outer index.
    scalars: &["extent", "inner", "slope: f32"],
    body: &["fn each(i: u32) { y[p.y + i] = f(source(i), b[p.b + place(i)]); }", EACH],
};

const BINARY_IN_PLACE: Kernel = Kernel { name: "binary in place", reads: &["b"], ..BINARY };

/// Returns the WGSL expression of a unary function in terms of `x`, `p.a` and `p.b`, and the values
/// of `p.a` and `p.b`. Returns `None` for a function that has no WGSL expression.
fn unary<A: Element>(op: &Unary<A>) -> Option<(&'static str, [f32; 2])> {
    let without_scalars = |expression| Some((expression, [0.0, 0.0]));
    match *op {
        Unary::Abs => without_scalars("bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu)"),
        Unary::Neg => without_scalars("bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u)"),
        Unary::Exp => without_scalars("exponential(x)"),
        Unary::Ln => without_scalars("logarithm(x)"),
        Unary::Sqr => without_scalars("x * x"),
        Unary::Sqrt => without_scalars("sqrt(x)"),
        Unary::Recip => without_scalars("1.0 / x"),
        Unary::Tanh => without_scalars("hyperbolic_tangent(x)"),
        Unary::Sigmoid => without_scalars("sigmoid(x)"),
        Unary::Sign => without_scalars("select(select(0.0, -1.0, x < 0.0), 1.0, x > 0.0)"),
        Unary::SignBit => without_scalars("f32(bitcast<u32>(x) >> 31u)"),
        Unary::AddScalar(c) => Some(("x + p.a", [float(c), 0.0])),
        Unary::Scale(c) => Some(("p.a * x", [float(c), 0.0])),
        Unary::Relu { slope } => Some(("select(p.a * x, x, x > 0.0)", [float(slope), 0.0])),
        // If `low > high`, `clip` returns `high`.
        Unary::Clip { low, high } => Some((
            "select(select(x, p.b, x > p.b), p.a, x < p.a)",
            [float(low).min(float(high)), float(high)],
        )),
        // For exponents above 16 or below −16, single precision is not enough for the intermediate
        // results of `pow`.
        Unary::Pow(p) if float(p).abs() <= 16.0 => {
            let exponent_kind = match float(p) {
                p if p % 2.0 == 0.0 => 2.0,
                p if p % 1.0 == 0.0 => 1.0,
                _ => 0.0,
            };
            Some(("power(x, p.a, p.b)", [float(p), exponent_kind]))
        }
        _ => None,
    }
}

/// Returns the WGSL expression of a binary function in terms of `a`, `b` and `p.slope`, and the
/// value of `p.slope`. Returns `None` for a function that has no WGSL expression.
fn binary<A: Element>(op: &Binary<A>) -> Option<(&'static str, f32)> {
    Some(match *op {
        Binary::Add => ("a + b", 0.0),
        Binary::Sub => ("a - b", 0.0),
        Binary::Mul => ("a * b", 0.0),
        Binary::MulScaled(c) => ("p.slope * a * b", float(c)),
        Binary::MulNegative => ("select(0.0, a * b, b < 0.0)", 0.0),
        Binary::Div => ("a / b", 0.0),
        Binary::DivOrZero => ("select(a / b, 0.0, b == 0.0)", 0.0),
        Binary::Max => ("select(b, a, a > b)", 0.0),
        Binary::Min => ("select(b, a, a < b)", 0.0),
        Binary::Greater => ("select(0.0, 1.0, a > b)", 0.0),
        Binary::GreaterEqual => ("select(0.0, 1.0, a >= b)", 0.0),
        Binary::Prelu => ("select(a * b, a, a > 0.0)", 0.0),
        Binary::PreluSlope => ("select(b, 1.0, a > 0.0)", 0.0),
        Binary::AbsGrad => ("select(select(0.0, -a, b < 0.0), a, b > 0.0)", 0.0),
        Binary::ReluGrad { slope } => ("select(p.slope * a, a, b > 0.0)", float(slope)),
        Binary::SigmoidGrad => ("a * b * (1.0 - b)", 0.0),
        Binary::TanhGrad => ("a * (1.0 - b * b)", 0.0),
        _ => return None,
    })
}

/// Launches the kernel of `Elementwise::binary`, or of `Elementwise::broadcast` if `broadcast` is
/// true. The caller checks the lengths of the operands.
fn launch_binary<T: Element>(
    device: &WgpuDevice,
    (name, expression, slope): (&str, &str, f32),
    (broadcast, axis): (bool, &Axis),
    a: Src<'_, T, WgpuDevice>,
    b: View<'_, T, WgpuDevice>,
    mut y: ViewMut<'_, T, WgpuDevice>,
) -> Result<()> {
    let variant = if broadcast { format!("{name} broadcast") } else { name.to_string() };
    let source = |operand| {
        let place = if broadcast { "i / p.inner % p.extent" } else { "i" };
        let function = format!("fn f(a: f32, b: f32) -> f32 {{ return {expression}; }}\n");
        let place = format!("fn place(i: u32) -> u32 {{ return {place}; }}\n");
        [source_function(operand), function, place].concat()
    };
    let n = y.len();
    let launch = match a {
        Src::View(a) => BINARY
            .variant(device, &variant, || source("a"))
            .read(a.device()?)
            .read(b.device()?)
            .write(y.device_write_only()?),
        Src::InPlace => BINARY_IN_PLACE
            .variant(device, &variant, || source("y"))
            .read(b.device()?)
            .write(y.device_mut()?),
    };
    launch.sizes([axis.extent, axis.inner]).floats([slope]).each(n)
}

impl Elementwise for WgpuDevice {
    fn fill<T: Element>(&self, value: T, mut y: ViewMut<'_, T, Self>) -> Result<()> {
        let Some(_scope) = self.native::<T>("fill") else {
            return fallback::fill(self, value, y);
        };
        let n = y.len();
        FILL.on(self).write(y.device_write_only()?).floats([float(value)]).each(n)
    }

    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (Some(_scope), Some((expression, scalars))) = (self.native::<T>("unary"), unary(&op))
        else {
            return fallback::unary(self, op, x, y);
        };
        let n = y.len();
        let source = |operand| {
            let function = format!("fn f(x: f32) -> f32 {{ return {expression}; }}\n");
            source_function(operand) + &function
        };
        let launch = match x {
            Src::View(x) => {
                check_len(op.kernel_name(), "y", x.len(), n)?;
                let launch = UNARY.variant(self, op.name(), || source("x"));
                launch.read(x.device()?).write(y.device_write_only()?)
            }
            Src::InPlace => {
                let launch = UNARY_IN_PLACE.variant(self, op.name(), || source("y"));
                launch.write(y.device_mut()?)
            }
        };
        launch.floats(scalars).each(n)
    }

    fn binary<T: Element>(
        &self,
        op: Binary<T::Acc>,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (Some(_scope), Some((expression, slope))) = (self.native::<T>("binary"), binary(&op))
        else {
            return fallback::binary(self, op, a, b, y);
        };
        if let Src::View(a) = a {
            check_len(op.kernel_name(), "b", a.len(), b.len())?;
            check_len(op.kernel_name(), "y", a.len(), y.len())?;
        }
        check_len(op.kernel_name(), "b", y.len(), b.len())?;
        let axis = Axis { outer: 1, extent: y.len(), inner: 1 };
        launch_binary(self, (op.name(), expression, slope), (false, &axis), a, b, y)
    }

    fn broadcast<T: Element>(
        &self,
        op: Binary<T::Acc>,
        axis: &Axis,
        a: Src<'_, T, Self>,
        b: View<'_, T, Self>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        let (Some(_scope), Some((expression, slope))) =
            (self.native::<T>("broadcast"), binary(&op))
        else {
            return fallback::broadcast(self, op, axis, a, b, y);
        };
        if let Src::View(a) = a {
            check_len("broadcast", "a", axis.count(), a.len())?;
        }
        check_len("broadcast", "b", axis.extent, b.len())?;
        check_len("broadcast", "y", axis.count(), y.len())?;
        launch_binary(self, (op.name(), expression, slope), (true, axis), a, b, y)
    }
}
