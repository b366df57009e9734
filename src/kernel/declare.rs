//! Macros that expand the declaration of a kernel to its trait method, fallback, host function and
//! name.
//!
//! The source file of a kernel family declares each kernel once, inside a macro `kernels!`. The
//! macro `kernels!` passes all declarations of the family to another macro. `declare_family!`
//! expands the declarations to the family's trait, fallbacks, functions on slices and kernel names.
//! The kernels of the simulated device expand from the same declarations.

use crate::{
    error::Result,
    memory::{KernelCall, Memory, ledger::KernelScope},
};

/// Expands the declarations of a kernel family to its trait, fallbacks, functions on slices and
/// kernel names.
///
/// A declaration looks like a method whose body checks the operands:
///
/// ```text
/// /// `y[o,e,i] ← x[o,e,i] · scale[e] + shift[e]`
/// fn affine<T: Element>(
///     axis: &Axis, x: src(affine_in_place) T, scale: read T, shift: read T, y: overwrite T
/// ) { axis.check_affine(x, scale, shift, y) }
/// ```
///
/// An argument without a keyword before its type is not an operand; the kernel takes it by value or
/// by reference, as declared. An argument is an operand if one of the following keywords precedes
/// its element type:
/// - `read T`: a [`View`](crate::View) that the kernel reads;
/// - `optional T`: an `Option<View>` that the kernel reads;
/// - `update T`: a [`ViewMut`](crate::ViewMut) that the kernel reads and writes, or of which the
///   kernel writes only some elements;
/// - `overwrite T`: a `ViewMut` of which the kernel writes every element and reads none;
/// - `overwrite(if condition) T`: like `overwrite T` if `condition` holds, else like `update T`;
/// - `src(function) T`: a [`Src`](crate::Src), an input operand that may be the same view as the
///   output operand. An in-place call runs the host function `function`, which omits the `src`
///   operand and updates the `overwrite` operand.
///
/// The host function of a kernel has the kernel's name, and takes the kernel's arguments in the
/// order of the declaration. A declaration lists input operands before output operands. In the body
/// of a declaration, an operand's name stands for its length: a `usize`, or an `Option<usize>` for
/// `optional` and `src`. Ledgers record a kernel by its [`recorded_name!`] and its element type
/// `T`, or by `u32` if the kernel has no element type. The declarations of a family follow
/// `trait Family { … }`, which may contain further methods.
macro_rules! declare_family {
    (
        $(#[$attr:meta])*
        trait $family:ident { $($methods:tt)* }
        $($kernels:tt)*
    ) => {
        $(#[$attr])*
        pub trait $family: $crate::memory::Memory {
            each_kernel! { [trait_method] $family $($kernels)* }
            $($methods)*
        }

        pub(crate) mod fallback {
            use super::*;
            each_kernel! { [fallback_function] $family $($kernels)* }
        }

        pub(crate) mod slices {
            use super::*;
            use $crate::host::{self, Workers};

            each_kernel! { [slice_function] $family $($kernels)* }
        }

        pub(crate) const NAMES: &[&str] = kernel_names!($($kernels)*);
    };
}

/// Parses the arguments of each kernel declaration, and passes the parsed declaration to the macro
/// named in brackets.
macro_rules! each_kernel {
    ($then:tt $family:ident $(
        $(#[$attr:meta])*
        fn $kernel:ident $(<$($param:ident: $bound:ident $(+ $more:path)?),+>)? ($($args:tt)*)
        $(-> $result:ty)? $check:block
    )*) => {
        $(parse_arguments! {
            $then
            {
                [$(#[$attr])*] $family $kernel [$($($param: $bound $(+ $more)?,)+)?] [$($result)?]
                $check
            }
            [] $($args)*
        })*
    };
}

macro_rules! kernel_names {
    ($(
        $(#[$attr:meta])*
        fn $kernel:ident $(<$($param:ident: $bound:ident $(+ $more:path)?),+>)? ($($args:tt)*)
        $(-> $result:ty)? $check:block
    )*) => {
        &[$(stringify!($kernel)),*]
    };
}

/// Turns each argument of a kernel declaration into a token group `(kind name [type] details)`.
macro_rules! parse_arguments {
    ([$then:ident] $kernel:tt [$($done:tt)*]) => { $then! { $kernel $($done)* } };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: read $T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (read $x [$T])] $($($rest)*)? }
    };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: optional $T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (optional $x [$T])] $($($rest)*)? }
    };
    (
        $then:tt $kernel:tt [$($done:tt)*]
        $x:ident: src($in_place:ident) $T:ty $(, $($rest:tt)*)?
    ) => {
        parse_arguments! { $then $kernel [$($done)* (src $x [$T] $in_place)] $($($rest)*)? }
    };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: update $T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (update $x [$T])] $($($rest)*)? }
    };
    (
        $then:tt $kernel:tt [$($done:tt)*]
        $x:ident: overwrite(if $condition:expr) $T:ty $(, $($rest:tt)*)?
    ) => {
        parse_arguments! {
            $then $kernel [$($done)* (overwrite_if $x [$T] $condition)] $($($rest)*)?
        }
    };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: overwrite $T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (overwrite $x [$T])] $($($rest)*)? }
    };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: &$T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (reference $x [$T])] $($($rest)*)? }
    };
    ($then:tt $kernel:tt [$($done:tt)*] $x:ident: $T:ty $(, $($rest:tt)*)?) => {
        parse_arguments! { $then $kernel [$($done)* (value $x [$T])] $($($rest)*)? }
    };
}

macro_rules! argument_type {
    (value $T:ty, $D:ty) => { $T };
    (reference $T:ty, $D:ty) => { &$T };
    (read $T:ty, $D:ty) => { $crate::memory::View<'_, $T, $D> };
    (optional $T:ty, $D:ty) => { Option<$crate::memory::View<'_, $T, $D>> };
    (src $T:ty, $D:ty) => { $crate::memory::Src<'_, $T, $D> };
    ($output:ident $T:ty, $D:ty) => { $crate::memory::ViewMut<'_, $T, $D> };
}

macro_rules! result_type {
    () => { $crate::error::Result<()> };
    ($R:ty) => { $crate::error::Result<$R> };
}

/// Expands to the element type's name, which ledgers record for a kernel.
macro_rules! element_name {
    () => {
        "u32"
    };
    ($($generics:tt)+) => {
        T::DTYPE.name()
    };
}

/// Expands to the name under which ledgers record a kernel. The name of a kernel that computes one
/// of several functions includes the function, such as `unary_exp`.
macro_rules! recorded_name {
    (unary ($kind:ident $op:ident $($details:tt)*) $($rest:tt)*) => {
        $op.kernel_name()
    };
    (binary ($kind:ident $op:ident $($details:tt)*) $($rest:tt)*) => {
        $op.kernel_name()
    };
    (reduce ($kind:ident $op:ident $($details:tt)*) $($rest:tt)*) => {
        $op.kernel_name()
    };
    (lrn ($kind:ident $op:ident $($details:tt)*) $($rest:tt)*) => {
        $op.kernel_name()
    };
    (lrn_backward ($kind:ident $op:ident $($details:tt)*) $($rest:tt)*) => {
        $op.backward_kernel_name()
    };
    ($kernel:ident $($args:tt)*) => {
        stringify!($kernel)
    };
}

/// Expands to a method of a family's trait, which runs the fallback function.
macro_rules! trait_method {
    (
        {
            [$($attr:tt)*] $family:ident $kernel:ident [$($generics:tt)*] [$($result:ty)?]
            $check:block
        }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        $($attr)*
        #[track_caller]
        fn $kernel<$($generics)*>(
            &self,
            $($x: argument_type!($kind $T, Self)),*
        ) -> result_type!($($result)?) {
            fallback::$kernel(self, $($x),*)
        }
    };
}

/// Expands to a function of [`fallback`](super::fallback), which runs the host function.
macro_rules! fallback_function {
    (
        {
            [$($attr:tt)*] $family:ident $kernel:ident [$($generics:tt)*] [$($result:ty)?]
            $check:block
        }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        #[doc = concat!(
            "Runs [`", stringify!($family), "::", stringify!($kernel), "`](crate::kernel::",
            stringify!($family), "::", stringify!($kernel), ") on the host."
        )]
        #[track_caller]
        pub fn $kernel<$($generics)* D: $crate::memory::Memory>(
            device: &D,
            $($x: argument_type!($kind $T, D)),*
        ) -> result_type!($($result)?) {
            let _kernel = $crate::kernel::declare::enter_fallback(
                device,
                recorded_name!($kernel $(($kind $x [$T] $($details)*))*),
                element_name!($($generics)*),
            )?;
            call_host! {
                [$crate::kernel::slices::$kernel] [device.host_workers()] []
                $(($kind $x [$T] $($details)*))*
            }
        }
    };
}

/// Expands to a kernel's function on slices and, if the kernel can run in place, to a second
/// function for calls in place. A kernel whose only generic parameter is the element type selects
/// the host function that this crate has compiled for the type.
macro_rules! slice_function {
    ({ $attr:tt $family:ident $kernel:ident [T: Element,] $result:tt $check:block } $($arg:tt)*) => {
        host_function! { $family $result $kernel [] [] [] $($arg)* }
    };
    (
        {
            $attr:tt $family:ident $kernel:ident [$($generics:tt)*] [$($result:ty)?] $check:block
        }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        #[doc = slice_doc!($family $kernel "")]
        ///
        /// # Errors
        /// Returns any error from the descriptor's `check`, such as
        /// [`Error::Length`](crate::Error::Length).
        pub fn $kernel<$($generics)*>(
            workers: &Workers,
            $($x: host_type!($kind $T)),*
        ) -> result_type!($($result)?) {
            host::$kernel(workers, $($x),*)
        }
    };
}

/// Expands to a host function and, if an operand is declared as `src`, to a second function that
/// works in place, without the `src` operand.
macro_rules! host_function {
    (
        $family:ident $result:tt $kernel:ident [$($name:ident)?]
        [$($args:tt)*] [$($in_place:tt)*] (src $x:ident [$T:ty] $function:ident) $($rest:tt)*
    ) => {
        host_function! {
            $family $result $kernel [$function]
            [$($args)* ($x &[$T])] [$($in_place)*] $($rest)*
        }
    };
    (
        $family:ident $result:tt $kernel:ident $name:tt
        [$($args:tt)*] [$($in_place:tt)*] ($kind:ident $x:ident [$T:ty] $($details:tt)*)
        $($rest:tt)*
    ) => {
        host_function! {
            $family $result $kernel $name
            [$($args)* ($x host_type!($kind $T))] [$($in_place)* ($x host_type!($kind $T))]
            $($rest)*
        }
    };
    (
        $family:ident $result:tt $kernel:ident [$($function:ident)?] $args:tt $in_place:tt
    ) => {
        host_function_as! { $family $kernel [$kernel ""] $result $args }
        $(host_function_as! { $family $function [$kernel " in place"] $result $in_place })?
    };
}

macro_rules! host_type {
    (value $T:ty) => { $T };
    (reference $T:ty) => { &$T };
    (read $T:ty) => { &[$T] };
    (optional $T:ty) => { Option<&[$T]> };
    ($output:ident $T:ty) => { &mut [$T] };
}

/// Expands to the first documentation line of a function in [`slices`](super::slices).
macro_rules! slice_doc {
    ($family:ident $kernel:ident $in_place:literal) => {
        concat!(
            "Runs [`",
            stringify!($family),
            "::",
            stringify!($kernel),
            "`](crate::kernel::",
            stringify!($family),
            "::",
            stringify!($kernel),
            ") on slices in host memory",
            $in_place,
            "."
        )
    };
}

/// Expands to a public function that calls the host function of the same name.
macro_rules! host_function_as {
    (
        $family:ident $name:ident [$kernel:ident $in_place:literal] [$($result:ty)?]
        [$(($x:ident $($T:tt)+))*]
    ) => {
        #[doc = slice_doc!($family $kernel $in_place)]
        ///
        /// # Errors
        /// Returns any error from the descriptor's `check`, such as
        /// [`Error::Length`](crate::Error::Length).
        #[allow(clippy::too_many_arguments)]
        pub fn $name<T: Element>(
            workers: &Workers,
            $($x: $($T)+),*
        ) -> result_type!($($result)?) {
            let function = host_function_for_element!(
                $name($($($T)+),*) -> result_type!($($result)?)
            );
            function(workers, $($x),*)
        }
    };
}

/// Expands to a pointer to the host function `$name` for the element type `T`.
///
/// A static that does not depend on `T` holds the pointers for all element types. cortado therefore
/// compiles the host functions, and a crate that calls a kernel does not compile them again. The
/// pointers point directly to the host functions, because a wrapper function would copy its
/// arguments on the stack, which costs 6 ns to 40 ns per call on a Xeon.
macro_rules! host_function_for_element {
    ($name:ident($($argument:ty),* $(,)?) -> $result:ty) => {{
        struct Function;
        impl $crate::element::PerElement for Function {
            type Of<T: Element> = fn(&Workers, $($argument),*) -> $result;
        }
        static FUNCTIONS: $crate::element::EachElement<Function> = $crate::element::EachElement {
            f16: host::$name,
            bf16: host::$name,
            f32: host::$name,
            f64: host::$name,
        };
        *T::entry(&FUNCTIONS)
    }};
}

/// Calls a host function with the host side of each operand.
///
/// The expansion nests one block per operand, because an overwritten operand is committed after the
/// host function returns. Arguments that are not operands are passed to the host function
/// unchanged.
macro_rules! call_host {
    ([$(@in_place)? $function:path] [$workers:expr] [$($arg:ident)*]) => {
        $function($workers, $($arg),*)
    };
    ($call:tt $workers:tt [$($arg:ident)*] (read $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = $x.host()?;
        call_host! { $call $workers [$($arg)* $x] $($rest)* }
    }};
    ($call:tt $workers:tt [$($arg:ident)*] (optional $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = $x.map($crate::memory::View::host).transpose()?;
        call_host! { $call $workers [$($arg)* $x] $($rest)* }
    }};
    ($call:tt $workers:tt $args:tt (src $x:ident $T:tt $in_place:ident) $($rest:tt)*) => {
        match $x {
            $crate::memory::Src::View($x) => {
                call_host! { $call $workers $args (read $x $T) $($rest)* }
            }
            $crate::memory::Src::InPlace => {
                call_host! { [@in_place $crate::kernel::slices::$in_place] $workers $args $($rest)* }
            }
        }
    };
    ($call:tt $workers:tt [$($arg:ident)*] (update $x:ident $T:tt) $($rest:tt)*) => {{
        let mut $x = $x;
        let $x = $x.host_mut()?;
        call_host! { $call $workers [$($arg)* $x] $($rest)* }
    }};
    ([@in_place $f:path] $workers:tt $args:tt (overwrite $x:ident $T:tt) $($rest:tt)*) => {
        call_host! { [@in_place $f] $workers $args (update $x $T) $($rest)* }
    };
    ($call:tt $workers:tt [$($arg:ident)*] (overwrite $x:ident $T:tt) $($rest:tt)*) => {{
        let mut $x = $x;
        let mut output = $x.host_output()?;
        let $x = output.elements()?;
        let result = call_host! { $call $workers [$($arg)* $x] $($rest)* }?;
        output.commit();
        Ok(result)
    }};
    (
        $call:tt $workers:tt [$($arg:ident)*]
        (overwrite_if $x:ident [$T:ty] $condition:expr) $($rest:tt)*
    ) => {{
        let mut $x = $x;
        let overwrites = $condition;
        if !overwrites {
            $x.host_mut()?;
        }
        let mut output = $x.host_output()?;
        let $x = output.elements()?;
        let result = call_host! { $call $workers [$($arg)* $x] $($rest)* }?;
        output.commit();
        Ok(result)
    }};
    ($call:tt $workers:tt [$($arg:ident)*] ($parameter:ident $x:ident $T:tt) $($rest:tt)*) => {
        call_host! { $call $workers [$($arg)* $x] $($rest)* }
    };
}

/// Reports to `device` that the kernel `name` falls back to the host, and opens the kernel's ledger
/// scope.
///
/// # Errors
/// Returns any error from [`Memory::on_fallback`].
#[track_caller]
pub(crate) fn enter_fallback<D: Memory>(
    device: &D,
    name: &'static str,
    element: &'static str,
) -> Result<KernelScope> {
    let kernel = KernelCall::new(name, element);
    device.on_fallback(&kernel)?;
    Ok(kernel.enter())
}
