//! Conformance checks, each of which tests one property that every device must have.

use super::{
    failure::{Failure, Verdict, flaw},
    runner::CheckRunner,
    watchdog::{Progress, watch},
};
use crate::{
    device::AnyDevice,
    element::DType,
    memory::{Memory, ledger::Ledger},
    op::RngKey,
};
use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// All element types, in the order in which the conformance kit runs the checks and prints the
/// results.
pub(super) const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::Bf16];

/// Result of one conformance check on one element type.
///
/// ```
/// use cortado::{DType, conformance::{CheckResult, Outcome}};
///
/// let (element, outcome) = (Some(DType::F16), Outcome::Fallback);
/// let result = CheckResult { check: "dot", kernel: Some("dot"), element, outcome };
/// let on_host = result.kernel.filter(|_| result.outcome == Outcome::Fallback);
/// assert_eq!(on_host, Some("dot")); // the device runs `dot` on the host
/// ```
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// Name of the check.
    pub check: &'static str,
    /// Kernel that the check tests, or `None` for a check that tests no single kernel.
    pub kernel: Option<&'static str>,
    /// Element type that was checked, or `None` for a check that does not depend on an element
    /// type.
    pub element: Option<DType>,
    /// Whether the check passed, and whether the kernel ran on the device or fell back to the host.
    pub outcome: Outcome,
}

/// Outcome of a conformance check: whether the check passed, and whether the tested kernel ran on
/// the device or fell back to the host.
///
/// ```
/// use cortado::conformance::Outcome;
///
/// fn symbol(outcome: &Outcome) -> char {
///     match outcome {
///         Outcome::Native => '✓',
///         Outcome::Fallback => '–',
///         Outcome::Failed(_) => '✗',
///         Outcome::Skipped(_) => '?',
///     }
/// }
/// assert_eq!([Outcome::Native, Outcome::Fallback].map(|outcome| symbol(&outcome)), ['✓', '–']);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The check passed, and the tested kernel never fell back to the host.
    Native,
    /// The check passed, but the tested kernel fell back to the host in at least one case.
    Fallback,
    /// The check failed.
    Failed(Failure),
    /// The kit skipped the check or a part of it, and found no failure. The string gives the reason
    /// for the skip.
    Skipped(String),
}

/// Seed and number of the random cases of a check, and the time after which a step of the check
/// counts as hung.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) seed: u64,
    pub(super) cases: u32,
    pub(super) timeout: Duration,
}

/// Result of running a check: passed, failed or hung.
pub(super) enum End {
    Passed(Passed),
    Failed(Failure),
    /// The device hangs in the check, so other checks of the device may hang, too.
    Hangs(Failure),
}

/// Ledger of a check that passed, and the reason why a part of the check was skipped, if any.
pub(super) struct Passed {
    /// Transfers and fallbacks during the check.
    pub(super) ledger: Ledger,
    /// Reason why the check, or a part of it, was skipped.
    pub(super) skipped: Option<String>,
}

/// Function that runs a check on one element type, or on `None` for a check that does not depend on
/// an element type.
type Body = dyn Fn(&CheckRunner<'_>, Option<DType>) -> Verdict + Send + Sync;

/// Conformance check of one property that every device must have.
pub(super) struct Check {
    /// Name of the check, and of the test that `conformance!` generates. If the check tests a
    /// kernel, the name usually starts with the name of the kernel.
    pub(super) name: &'static str,
    /// Kernel for which the check records fallbacks to the host.
    pub(super) kernel: Option<&'static str>,
    /// Element types on which the check runs; `[None]` for a check that does not depend on an
    /// element type.
    pub(super) elements: Vec<Option<DType>>,
    body: Arc<Body>,
}

impl Check {
    /// Creates a check that runs once, because the check does not depend on an element type.
    pub(super) fn once(
        name: &'static str,
        kernel: Option<&'static str>,
        body: fn(&CheckRunner<'_>) -> Verdict,
    ) -> Self {
        let body = Arc::new(move |runner: &CheckRunner<'_>, _| body(runner));
        Self { name, kernel, elements: vec![None], body }
    }

    /// Creates a check that tests a kernel on each element type. The macro
    /// [`checks!`](super::check::checks) expands to calls of `of_elements`.
    pub(super) fn of_elements(
        name: &'static str,
        kernel: &'static str,
        body: impl Fn(&CheckRunner<'_>, DType) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let body = Arc::new(move |runner: &CheckRunner<'_>, element: Option<DType>| {
            element.map_or(Ok(()), |element| body(runner, element))
        });
        Self { name, kernel: Some(kernel), elements: DTYPES.map(Some).to_vec(), body }
    }

    /// Runs the check on one element type of [`elements`](Self::elements), on a new thread. A panic
    /// in the check counts as a failure.
    pub(super) fn run(
        &self,
        device: &AnyDevice,
        element: Option<DType>,
        settings: Settings,
    ) -> End {
        let names = [Some(self.name), self.kernel];
        let (on_thread, body) = (device.clone(), Arc::clone(&self.body));
        let run = move |progress: &Progress| {
            run_body(&on_thread, &*body, names, element, settings, progress)
        };
        let failure = |message| Failure {
            check: self.name,
            element,
            message,
            device: device.name(),
            seed: settings.seed,
            cases: settings.cases,
        };
        match watch(self.name, settings.timeout, run) {
            Ok(Ok(passed)) => End::Passed(passed),
            Ok(Err(flaw)) => End::Failed(failure(flaw.0)),
            Err(hangs) => End::Hangs(failure(hangs)),
        }
    }
}

/// Runs the body of a check. `names` are the names of the check and of its kernel.
fn run_body(
    device: &AnyDevice,
    body: &Body,
    names: [Option<&'static str>; 2],
    element: Option<DType>,
    settings: Settings,
    progress: &Progress,
) -> Verdict<Passed> {
    let [name, type_name] = [names[0].unwrap_or(""), element.map_or("", DType::name)];
    let key = RngKey::new(settings.seed).named_child(name).named_child(type_name);
    let (seed, cases) = (key.stream, settings.cases);
    let (calls, skipped) = (Cell::new(0), RefCell::new(None));
    let runner = CheckRunner { device, seed, cases, calls, skipped, progress };
    let ledger = Ledger::new();
    let guard = ledger.open();
    let body = || {
        body(&runner, element)?;
        // If a kernel call that this check queued has failed, this check must fail, not a later
        // check.
        runner.start_step("`synchronize` of the device after all cases");
        let result = device.synchronize();
        result.map_err(|error| flaw!("a queued call of this check failed: {error}"))?;
        check_scopes(names, &ledger)
    };
    catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|panic| Err(flaw!("panicked: {}", panic_message(&*panic))))?;
    drop(guard);
    Ok(Passed { ledger, skipped: runner.skipped.take() })
}

/// Fails if the tested kernel used the device side of an operand outside the kernel's ledger scope.
fn check_scopes(names: [Option<&'static str>; 2], ledger: &Ledger) -> Verdict {
    let kernels_without_scope = ledger.unscoped_kernels();
    match kernels_without_scope.iter().find(|kernel| names.contains(&Some(kernel.name))) {
        None => Ok(()),
        Some(kernel) => Err(flaw!(
            "`{name}` used the device side of an operand outside the kernel's ledger scope; first \
             call `ledger::enter_kernel(\"{name}\", element)`, and keep the guard",
            name = kernel.name
        )),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Defines a function `checks()` that returns a list of checks of kernels. The entry `"name" of
/// "kernel": function(arguments)` declares a check that calls `function::<T>(runner, arguments)`
/// for each element type. The entry `without elements "kernel": function()` declares a check of a
/// kernel that has no element type.
macro_rules! checks {
    (
        $($name:literal of $kernel:literal: $function:ident($($arg:expr),*);)*
        $(without elements $word_kernel:literal: $word_function:ident();)*
    ) => {
        pub(super) fn checks() -> Vec<$crate::conformance::check::Check> {
            use $crate::{conformance::check::Check, element::{DType, bf16, f16}};
            vec![
                $(Check::of_elements($name, $kernel, |runner, dtype| match dtype {
                    DType::F16 => $function::<f16>(runner $(, $arg)*),
                    DType::Bf16 => $function::<bf16>(runner $(, $arg)*),
                    DType::F32 => $function::<f32>(runner $(, $arg)*),
                    DType::F64 => $function::<f64>(runner $(, $arg)*),
                }),)*
                $(Check::once($word_kernel, Some($word_kernel), $word_function),)*
            ]
        }
    };
}
pub(super) use checks;
