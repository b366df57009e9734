//! Kernels of the simulated device, generated from the declarations in [`kernel`](crate::kernel). A
//! kernel call checks the operands and queues the host function. A wait for the queue runs the host
//! function.

use super::{SimulatedDevice, launch::Launch};
use crate::{
    element::{Element, Storable},
    error::{Result, check_len},
    host::{
        check_strided, expect_bound, expect_interval, expect_keep, expect_normal,
        expect_probability,
    },
    kernel::{
        Blas, Conv, Elementwise, Indexing, Losses, Normalize, Pooling, Random, Reductions, Update,
        blas, conv, elementwise, indexing, losses, normalize, pooling, random, reductions, slices,
    },
    memory::{Src, View, ViewMut},
    op::{
        Accuracy, Axis, Binary, ClassLoss, Convolution, Copy2d, ElementwiseLoss, Gemm, GemmBatch,
        Gemv, Lrn, Lstm, Permute, Pool2d, Reduce, RngKey, RowIndexing, SoftmaxLoss, SolverUpdate,
        Standardize, Tile, TopK, Unary, Window,
    },
};
use num_traits::Zero;

/// Implements a kernel family for the simulated device, from declarations in the syntax of
/// `declare_family!`.
macro_rules! simulate_family {
    (
        $(#[$attr:meta])*
        trait $family:ident { $($methods:tt)* }
        $($kernels:tt)*
    ) => {
        impl $family for SimulatedDevice {
            each_kernel! { [simulated_method] $family $($kernels)* }
        }
    };
}

/// Expands to a kernel method that checks the operands, copies stale operands to the device and
/// queues the host function.
macro_rules! simulated_method {
    (
        {
            [$($attr:tt)*] $family:ident $kernel:ident [$($generics:tt)*] [$($result:ty)?]
            $check:block
        }
        $(($kind:ident $x:ident [$T:ty] $($details:tt)*))*
    ) => {
        fn $kernel<$($generics)*>(
            &self,
            $($x: argument_type!($kind $T, Self)),*
        ) -> result_type!($($result)?) {
            {
                $(bind_len! { $kind $x })*
                let check_result: Result<()> = $check;
                check_result?;
            }
            let element = element_name!($($generics)*);
            let name = recorded_name!($kernel $(($kind $x [$T] $($details)*))*);
            let mut launch = Launch::new(self, name, element)?;
            queue_host_call! {
                launch [slices::$kernel] [$($result)?] [] $(($kind $x [$T] $($details)*))*
            }
        }
    };
}

/// Rebinds the name of an operand to the operand's length, for the operand check.
macro_rules! bind_len {
    (value $x:ident) => {};
    (reference $x:ident) => {};
    (optional $x:ident) => {
        let $x = $x.map(|x| x.len());
    };
    (src $x:ident) => {
        let $x = match $x {
            Src::View(x) => Some(x.len()),
            Src::InPlace => None,
        };
    };
    // Some kernels do not check the lengths of all operands, so the variable that
    // holds a length can be unused.
    ($kind:ident $x:ident) => {
        #[allow(unused_variables)]
        let $x = $x.len();
    };
}

/// Reserves the device memory of an output other than the first, before the kernel discards the
/// value of its first output. If one output does not fit in device memory, the other outputs keep
/// their values.
macro_rules! reserve_output {
    (overwrite $x:ident) => {
        let mut $x = $x;
        $x.reserve_device()?;
    };
    ($kind:ident $x:ident) => {};
}

/// Queues a host function in a closure, which owns the function's arguments.
macro_rules! queue_host_call {
    ($launch:ident [$(@in_place)? $function:path] [] [$($arg:expr,)*]) => {
        $launch.queue(Box::new(move |workers| $function(workers, $($arg),*)))
    };
    ($launch:ident [$function:path] [$result:ty] [$($arg:expr,)*]) => {
        $launch.value(move |workers| $function(workers, $($arg),*))
    };
    ($launch:ident $call:tt $result:tt [$($args:tt)*] (value $x:ident $T:tt) $($rest:tt)*) => {
        queue_host_call! { $launch $call $result [$($args)* $x,] $($rest)* }
    };
    ($launch:ident $call:tt $result:tt [$($args:tt)*] (reference $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = ToOwned::to_owned($x);
        queue_host_call! { $launch $call $result [$($args)* &$x,] $($rest)* }
    }};
    ($launch:ident $call:tt $result:tt [$($args:tt)*] (read $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = $launch.reads($x)?;
        queue_host_call! { $launch $call $result [$($args)* &$x.read(),] $($rest)* }
    }};
    ($launch:ident $call:tt $result:tt [$($args:tt)*] (optional $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = $x.map(|x| $launch.reads(x)).transpose()?;
        queue_host_call! {
            $launch $call $result [$($args)* $x.as_ref().map(|x| x.read()).as_deref(),] $($rest)*
        }
    }};
    (
        $launch:ident $call:tt $result:tt $args:tt
        (src $x:ident $T:tt $in_place:ident) $($rest:tt)*
    ) => {
        match $x {
            Src::View($x) => {
                queue_host_call! { $launch $call $result $args (read $x $T) $($rest)* }
            }
            Src::InPlace => {
                queue_host_call! { $launch [@in_place slices::$in_place] $result $args $($rest)* }
            }
        }
    };
    ($launch:ident $call:tt $result:tt [$($args:tt)*] (update $x:ident $T:tt) $($rest:tt)*) => {{
        let $x = $launch.updates($x)?;
        queue_host_call! { $launch $call $result [$($args)* &mut $x.write(),] $($rest)* }
    }};
    (
        $launch:ident [@in_place $function:path] $result:tt $args:tt
        (overwrite $x:ident $T:tt) $($rest:tt)*
    ) => {
        queue_host_call! { $launch [@in_place $function] $result $args (update $x $T) $($rest)* }
    };
    (
        $launch:ident $call:tt $result:tt [$($args:tt)*]
        (overwrite $x:ident $T:tt) $(($kind:ident $other:ident $($details:tt)*))*
    ) => {{
        $(reserve_output! { $kind $other })*
        let $x = $launch.overwrites($x)?;
        queue_host_call! {
            $launch $call $result [$($args)* &mut $x.write(),] $(($kind $other $($details)*))*
        }
    }};
    (
        $launch:ident $call:tt $result:tt [$($args:tt)*]
        (overwrite_if $x:ident $T:tt $condition:expr) $($rest:tt)*
    ) => {{
        let $x = $launch.overwrites_if($condition, $x)?;
        queue_host_call! { $launch $call $result [$($args)* &mut $x.write(),] $($rest)* }
    }};
}

blas::kernels!(simulate_family);
conv::kernels!(simulate_family);
elementwise::kernels!(simulate_family);
indexing::kernels!(simulate_family);
losses::kernels!(simulate_family);
normalize::kernels!(simulate_family);
pooling::kernels!(simulate_family);
random::kernels!(simulate_family);
reductions::kernels!(simulate_family);

impl Update for SimulatedDevice {
    fn solver_update<T: Element>(
        &self,
        op: &SolverUpdate<T>,
        dw: View<'_, T, Self>,
        weights: ViewMut<'_, T, Self>,
        masters: Option<ViewMut<'_, T::Acc, Self>>,
        history: &mut [ViewMut<'_, T::Acc, Self>],
    ) -> Result<()> {
        let lengths = history.iter().map(ViewMut::len);
        op.check(weights.len(), dw.len(), masters.as_ref().map(ViewMut::len), lengths)?;
        let mut launch = Launch::new(self, op.rule.kernel_name(), T::DTYPE.name())?;
        let (op, dw, weights) = (*op, launch.reads(dw)?, launch.updates(weights)?);
        let masters = masters.map(|masters| launch.updates(masters)).transpose()?;
        let history = history.iter_mut().map(|history| launch.updates(history.reborrow()));
        let history = history.collect::<Result<Vec<_>>>()?;
        launch.queue(Box::new(move |workers| {
            let mut masters = masters.as_ref().map(|masters| masters.write());
            let mut history: Vec<_> = history.iter().map(|history| history.write()).collect();
            let mut history: Vec<&mut [T::Acc]> = history.iter_mut().map(|h| &mut **h).collect();
            let (dw, mut weights) = (dw.read(), weights.write());
            let masters = masters.as_deref_mut();
            slices::solver_update(workers, &op, &dw, &mut weights, masters, &mut history)
        }))
    }
}
