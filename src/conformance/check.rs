//! One check: what a kernel, or a property besides kernels, has to hold to.

use super::{
    runner::CheckRunner,
    failure::{Failure, Verdict, flaw},
    kit::Kit,
};
use crate::{device::Device, element::DType, op::RngKey};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The element types, in the order in which they are checked and shown.
pub(super) const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::Bf16];

/// The work on one element type, if the check is about any.
type Body<D> = dyn Fn(&CheckRunner<'_, D>, Option<DType>) -> Verdict;

/// A property of devices, by name.
pub(super) struct Check<D: Device> {
    /// Its name and that of its test: the kernel's, with what it is tried as.
    pub(super) name: &'static str,
    /// The kernel whose fallbacks count.
    pub(super) kernel: Option<&'static str>,
    /// What it is tried on: element types, or `None` once.
    pub(super) elements: Vec<Option<DType>>,
    body: Box<Body<D>>,
}

impl<D: Device> Check<D> {
    /// A check that is not about one kernel.
    pub(super) fn general(name: &'static str, body: fn(&CheckRunner<'_, D>) -> Verdict) -> Self {
        let body = Box::new(move |bench: &CheckRunner<'_, D>, _| body(bench));
        Self { name, kernel: None, elements: vec![None], body }
    }

    /// A kernel without an element type.
    pub(super) fn of_words(name: &'static str, body: fn(&CheckRunner<'_, D>) -> Verdict) -> Self {
        Self { kernel: Some(name), ..Self::general(name, body) }
    }

    /// A kernel on each element type: made by [`checks!`](super::check::checks).
    pub(super) fn of_elements(
        name: &'static str,
        kernel: &'static str,
        body: impl Fn(&CheckRunner<'_, D>, DType) -> Verdict + 'static,
    ) -> Self {
        let body = Box::new(move |bench: &CheckRunner<'_, D>, element: Option<DType>| {
            element.map_or(Ok(()), |element| body(bench, element))
        });
        Self { name, kernel: Some(kernel), elements: DTYPES.map(Some).to_vec(), body }
    }

    /// Tries it on one of its [`elements`](Self::elements). A panic is a failure.
    pub(super) fn run(&self, kit: &Kit, device: &D, element: Option<DType>) -> Result<(), Failure> {
        let type_name = element.map_or("", DType::name);
        let key = RngKey::new(kit.seed).named_child(self.name).named_child(type_name);
        let bench = CheckRunner { device, seed: key.stream, cases: kit.cases };
        let body = || (self.body)(&bench, element);
        let verdict = catch_unwind(AssertUnwindSafe(body))
            .unwrap_or_else(|panic| Err(flaw!("panicked: {}", words(&*panic))));
        verdict.map_err(|flaw| Failure {
            check: self.name,
            element,
            message: flaw.0,
            device: device.name(),
            seed: kit.seed,
            cases: kit.cases,
        })
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Checks of kernels, one a line: `"name" of "kernel": function(arguments)` calls
/// `function::<T, D>(bench, arguments)` for each element type.
macro_rules! checks {
    ($($name:literal of $kernel:literal: $function:ident($($arg:expr),*);)*) => {
        vec![$($crate::conformance::check::Check::of_elements($name, $kernel, |bench, dtype| {
            use $crate::element::{DType, bf16, f16};
            match dtype {
                DType::F16 => $function::<f16, D>(bench $(, $arg)*),
                DType::Bf16 => $function::<bf16, D>(bench $(, $arg)*),
                DType::F32 => $function::<f32, D>(bench $(, $arg)*),
                DType::F64 => $function::<f64, D>(bench $(, $arg)*),
            }
        })),*]
    };
}
pub(super) use checks;
