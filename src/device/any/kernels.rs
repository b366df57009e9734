//! The kernels of an [`AnyDevice`], generated from the declarations in [`kernel`](crate::kernel).

use super::{
    handle::AnyDevice,
    kernel_shape::KernelShape,
    operand::{AnyViewMut, IntegerView},
};
use crate::{
    device::Device,
    element::{Element, Storable},
    error::Result,
    kernel::{Blas, Conv, Elementwise, Update},
    memory::{
        Src, View, ViewMut,
        ledger::{AnyCall, describe_kernel},
    },
    op::{Convolution, Gemm, SolverUpdate, Unary},
};

/// Expands the declarations of a kernel family to a trait `Kernels` for one element type.
/// Implements `Kernels` for all devices, and the trait of the kernel family for `AnyDevice`.
macro_rules! erase_family {
    ($(#[$attr:meta])* trait $family:ident { $($methods:tt)* } $($kernels:tt)*) => {
        pub(in crate::device::any) trait Kernels<T: Element> {
            each_kernel! { [erased_declaration] $family $($kernels)* }
        }

        impl<T: Element, D: Device> Kernels<T> for D {
            each_kernel! { [erased_implementation] $family $($kernels)* }
        }

        impl $family for AnyDevice {
            each_kernel! { [any_method] $family $($kernels)* }
            other_method! { $family }
        }
    };
}

macro_rules! erased_declaration {
    // Skip kernels with two type parameters, which `super::Kernels` declares.
    (
        {
            $attr:tt $family:ident $kernel:ident
            [$T:ident: $E:ident $(+ $F:path)?, $U:ident: $($more:tt)*] $($rest:tt)*
        }
        $($args:tt)*
    ) => {};
    (
        { $attr:tt $family:ident $kernel:ident $generics:tt [$($result:ty)?] $check:block }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        #[allow(clippy::too_many_arguments)]
        fn $kernel(
            &self,
            $($x: argument_type!($kind $T, AnyDevice)),*
        ) -> result_type!($($result)?);
    };
}

macro_rules! erased_implementation {
    (
        {
            $attr:tt $family:ident $kernel:ident
            [$T:ident: $E:ident $(+ $F:path)?, $U:ident: $($more:tt)*] $($rest:tt)*
        }
        $($args:tt)*
    ) => {};
    (
        { $attr:tt $family:ident $kernel:ident $generics:tt [$($result:ty)?] $check:block }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        fn $kernel(
            &self,
            $($x: argument_type!($kind $T, AnyDevice)),*
        ) -> result_type!($($result)?) {
            $family::$kernel(self, $(on_device!($kind $x)),*)
        }
    };
}

/// Converts an argument for an `AnyDevice` to an argument for the wrapped device.
macro_rules! on_device {
    (value $x:ident) => {
        $x
    };
    (reference $x:ident) => {
        $x
    };
    (optional $x:ident) => {
        $x.map(View::on)
    };
    ($operand:ident $x:ident) => {
        $x.on()
    };
}

macro_rules! any_method {
    (
        {
            [$($attr:tt)*] $family:ident $kernel:ident
            [$T:ident: $E:ident $(+ $F:path)?, $U:ident: $($more:tt)*] [] $check:block
        }
        $(($kind:ident $x:ident [$A:ty] $($details:tt)*))*
    ) => {
        #[track_caller]
        fn $kernel<$T: $E $(+ $F)?, $U: $($more)*>(
            &self,
            $($x: argument_type!($kind $A, Self)),*
        ) -> Result<()> {
            let _call = AnyCall::enter(stringify!($kernel), stringify!($kernel));
            let _size = describe_kernel([stringify!($kernel); 2], &|size| {
                $(describe_operand!(size, ($kind $x [$A] $($details)*));)*
            });
            two_types::$kernel(self, $($x),*)
        }
    };
    (
        {
            [$($attr:tt)*] $family:ident $kernel:ident [$($T:ident: $E:ident,)?] [$($result:ty)?]
            $check:block
        }
        $(($kind:ident $x:ident [$A:ty] $($details:tt)*))*
    ) => {
        #[track_caller]
        fn $kernel<$($T: $E)?>(
            &self,
            $($x: argument_type!($kind $A, Self)),*
        ) -> result_type!($($result)?) {
            let name = recorded_name!($kernel $(($kind $x [$A] $($details)*))*);
            let _call = AnyCall::enter(stringify!($kernel), name);
            let _size = describe_kernel([name; 2], &|size| {
                $(describe_operand!(size, ($kind $x [$A] $($details)*));)*
                describe_shape!(size, $kernel $($x)*);
            });
            element_kernels!(self $($T)?).$kernel($($x),*)
        }
    };
}

/// Adds an operand to the size of a kernel call.
macro_rules! describe_operand {
    ($size:ident, (value $($x:tt)*)) => {};
    ($size:ident, (reference $($x:tt)*)) => {};
    ($size:ident, (optional $x:ident [$T:ty])) => {
        if let Some(x) = &$x {
            $size.read(stringify!($x), x.len(), size_of::<$T>());
        }
    };
    ($size:ident, (src $x:ident [$T:ty] $function:ident)) => {
        match &$x {
            Src::InPlace => $size.in_place(),
            Src::View(x) => $size.read(stringify!($x), x.len(), size_of::<$T>()),
        }
    };
    ($size:ident, (overwrite_if $x:ident [$T:ty] $condition:expr)) => {
        if $condition {
            $size.overwrite(stringify!($x), $x.len(), size_of::<$T>());
        } else {
            $size.update(stringify!($x), $x.len(), size_of::<$T>());
        }
    };
    ($size:ident, ($access:ident $x:ident [$T:ty])) => {
        $size.$access(stringify!($x), $x.len(), size_of::<$T>())
    };
}

/// Adds the shape of a kernel call, and the floating-point operations of matrix products and
/// convolutions, to the size of the call.
macro_rules! describe_shape {
    ($size:ident, gemm_batched $op:ident $batch:ident $($x:ident)*) => {
        ($op, $batch).describe($size)
    };
    ($size:ident, gemm $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, gemv $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, im2col $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, col2im $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, convolve $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, convolve_backward_input $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, convolve_backward_filters $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, max_pool $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, max_pool_backward $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, average_pool $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, average_pool_backward $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, stochastic_pool $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, softmax $($x:ident)*) => { describe_first!($size, $($x)*) };
    ($size:ident, softmax_backward $($x:ident)*) => { describe_first!($size, $($x)*) };
    // Other kernels, whose operands alone say their size.
    ($size:ident, $kernel:ident $($x:ident)*) => {};
}

/// Adds the shape that the descriptor, the first argument of a kernel, describes.
macro_rules! describe_first {
    ($size:ident, $op:ident $($x:ident)*) => {
        $op.describe($size)
    };
}

/// Expands to the trait object `Kernels` of a device for an element type, or for `f32` if the
/// kernel has no element type.
macro_rules! element_kernels {
    ($device:ident) => {
        $device.kernels::<f32>()
    };
    ($device:ident $T:ident) => {
        $device.kernels::<$T>()
    };
}

/// Expands to the method that a kernel family defines outside its macro `kernels!`, if it has such
/// a method.
macro_rules! other_method {
    (Conv) => {
        #[track_caller]
        fn convolve_with_activation<T: Element>(
            &self,
            op: &Convolution,
            x: View<'_, T, Self>,
            filters: View<'_, T, Self>,
            bias: Option<View<'_, T, Self>>,
            function: Unary<T::Acc>,
            y: ViewMut<'_, T, Self>,
        ) -> Result<()> {
            let (name, kernels) = ("convolve_with_activation", ["convolve"; 2]);
            let _call = AnyCall::enter_fused(name, kernels, function.kernel_name());
            let _size = describe_kernel([name, "convolve"], &|size| {
                size.read("x", x.len(), size_of::<T>());
                size.read("filters", filters.len(), size_of::<T>());
                if let Some(bias) = bias {
                    size.read("bias", bias.len(), size_of::<T>());
                }
                size.overwrite("y", y.len(), size_of::<T>());
                op.describe(size);
            });
            self.kernels::<T>().convolve_with_activation(op, x, filters, bias, function, y)
        }
    };
    (Blas) => {
        #[track_caller]
        fn gemm_with_bias<T: Element>(
            &self,
            op: &Gemm<T>,
            a: View<'_, T, Self>,
            b: View<'_, T, Self>,
            bias: View<'_, T, Self>,
            function: Option<Unary<T::Acc>>,
            c: ViewMut<'_, T, Self>,
        ) -> Result<()> {
            let activation = function.as_ref().map_or("gemm", Unary::kernel_name);
            let _call = AnyCall::enter_fused("gemm_with_bias", ["gemm", "broadcast"], activation);
            let _size = describe_kernel(["gemm_with_bias", "gemm"], &|size| {
                for (name, operand) in [("a", a), ("b", b), ("bias", bias)] {
                    size.read(name, operand.len(), size_of::<T>());
                }
                match op.overwrites() {
                    true => size.overwrite("c", c.len(), size_of::<T>()),
                    false => size.update("c", c.len(), size_of::<T>()),
                }
                op.describe(size);
            });
            self.kernels::<T>().gemm_with_bias(op, a, b, bias, function, c)
        }
    };
    ($family:ident) => {};
}

/// Expands the declarations of each family in a separate module, because the expansion for each
/// family defines a trait `Kernels`.
macro_rules! erase_families {
    ($($family:ident),*) => {
        $(mod $family {
            #[allow(unused_imports)] // Each family uses only some of the imports.
            use super::*;
            #[allow(unused_imports)]
            use crate::{
                kernel::{Indexing, Losses, Normalize, Pooling, Random, Reductions},
                op::*,
            };
            #[allow(unused_imports)]
            use num_traits::Zero;
            crate::kernel::$family::kernels!(erase_family);
        })*

        /// The kernels of all families for one element type, on memory of an [`AnyDevice`].
        pub(super) trait Kernels<T: Element>: $($family::Kernels<T> +)* Send + Sync {
            fn convolve_with_activation(
                &self,
                op: &Convolution,
                x: View<'_, T, AnyDevice>,
                filters: View<'_, T, AnyDevice>,
                bias: Option<View<'_, T, AnyDevice>>,
                function: Unary<T::Acc>,
                y: ViewMut<'_, T, AnyDevice>,
            ) -> Result<()>;

            fn gemm_with_bias(
                &self,
                op: &Gemm<T>,
                a: View<'_, T, AnyDevice>,
                b: View<'_, T, AnyDevice>,
                bias: View<'_, T, AnyDevice>,
                function: Option<Unary<T::Acc>>,
                c: ViewMut<'_, T, AnyDevice>,
            ) -> Result<()>;

            fn convert(&self, x: View<'_, T, AnyDevice>, y: AnyViewMut<'_>) -> Result<()>;

            fn convert_integers(
                &self,
                x: IntegerView<'_>,
                y: ViewMut<'_, T, AnyDevice>,
            ) -> Result<()>;

            fn solver_update(
                &self,
                op: &SolverUpdate<T>,
                dw: View<'_, T, AnyDevice>,
                weights: ViewMut<'_, T, AnyDevice>,
                masters: Option<ViewMut<'_, T::Acc, AnyDevice>>,
                history: &mut [ViewMut<'_, T::Acc, AnyDevice>],
            ) -> Result<()>;
        }
    };
}
erase_families!(blas, conv, elementwise, indexing, losses, normalize, pooling, random, reductions);

impl AnyDevice {
    fn kernels<T: Element>(&self) -> &dyn Kernels<T> {
        &**self.table::<T, Box<dyn Kernels<T>>>()
    }
}

/// Functions that call the kernels with two type parameters through [`Kernels`], which fixes one of
/// the two element types.
mod two_types {
    use super::*;
    use crate::{element::DType, kernel::fallback};

    pub(super) fn convert<T: Element, U: Element>(
        device: &AnyDevice,
        x: View<'_, T, AnyDevice>,
        y: ViewMut<'_, U, AnyDevice>,
    ) -> Result<()> {
        let y = match U::DTYPE {
            DType::F16 => y.downcast().map(AnyViewMut::F16),
            DType::Bf16 => y.downcast().map(AnyViewMut::Bf16),
            DType::F32 => y.downcast().map(AnyViewMut::F32),
            DType::F64 => y.downcast().map(AnyViewMut::F64),
        };
        y.map_or(Ok(()), |y| device.kernels::<T>().convert(x, y))
    }

    /// Converts integers on the device if their type is `i32` or `u32`, else on the host.
    pub(super) fn convert_integers<N: Storable + Into<f64>, T: Element>(
        device: &AnyDevice,
        x: View<'_, N, AnyDevice>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        if let Some(x) = x.downcast::<i32>() {
            device.kernels::<T>().convert_integers(IntegerView::I32(x), y)
        } else if let Some(x) = x.downcast::<u32>() {
            device.kernels::<T>().convert_integers(IntegerView::U32(x), y)
        } else {
            fallback::convert_integers(device, x, y)
        }
    }
}

impl<T: Element, D: Device> Kernels<T> for D {
    fn convolve_with_activation(
        &self,
        op: &Convolution,
        x: View<'_, T, AnyDevice>,
        filters: View<'_, T, AnyDevice>,
        bias: Option<View<'_, T, AnyDevice>>,
        function: Unary<T::Acc>,
        y: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        let (x, filters, bias) = (x.on(), filters.on(), bias.map(View::on));
        Conv::convolve_with_activation(self, op, x, filters, bias, function, y.on())
    }

    fn gemm_with_bias(
        &self,
        op: &Gemm<T>,
        a: View<'_, T, AnyDevice>,
        b: View<'_, T, AnyDevice>,
        bias: View<'_, T, AnyDevice>,
        function: Option<Unary<T::Acc>>,
        c: ViewMut<'_, T, AnyDevice>,
    ) -> Result<()> {
        Blas::gemm_with_bias(self, op, a.on(), b.on(), bias.on(), function, c.on())
    }

    fn convert(&self, x: View<'_, T, AnyDevice>, y: AnyViewMut<'_>) -> Result<()> {
        match y {
            AnyViewMut::F16(y) => Elementwise::convert(self, x.on(), y.on()),
            AnyViewMut::Bf16(y) => Elementwise::convert(self, x.on(), y.on()),
            AnyViewMut::F32(y) => Elementwise::convert(self, x.on(), y.on()),
            AnyViewMut::F64(y) => Elementwise::convert(self, x.on(), y.on()),
        }
    }

    fn convert_integers(&self, x: IntegerView<'_>, y: ViewMut<'_, T, AnyDevice>) -> Result<()> {
        match x {
            IntegerView::I32(x) => Elementwise::convert_integers(self, x.on(), y.on()),
            IntegerView::U32(x) => Elementwise::convert_integers(self, x.on(), y.on()),
        }
    }

    fn solver_update(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, AnyDevice>,
        weights: ViewMut<'_, T, AnyDevice>,
        masters: Option<ViewMut<'_, T::Acc, AnyDevice>>,
        history: &mut [ViewMut<'_, T::Acc, AnyDevice>],
    ) -> Result<()> {
        let mut history: Vec<_> = history.iter_mut().map(|view| view.reborrow().on()).collect();
        let masters = masters.map(ViewMut::on);
        Update::solver_update(self, op, dw.on(), weights.on(), masters, &mut history)
    }
}

impl Update for AnyDevice {
    #[track_caller]
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let name = op.rule.kernel_name();
        let _call = AnyCall::enter("solver_update", name);
        let _size = describe_kernel([name; 2], &|size| {
            size.read("dw", dw.len(), size_of::<T>());
            size.update("weights", weights.len(), size_of::<T>());
            let others = masters.iter().chain(history.iter());
            others.for_each(|state| size.update("state", state.len(), size_of::<T::Acc>()));
        });
        self.kernels::<T>().solver_update(op, dw, weights, masters, history)
    }
}
