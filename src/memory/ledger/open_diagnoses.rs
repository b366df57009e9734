//! The diagnoses that are open on a thread, and the policies for needless work.

use super::{
    context::{DiagnosisWatch, with_context},
    diagnosis::{recorder::Diagnosis, waste::Waste},
    policy::Policy,
    policy_guard::{PolicyGuard, Subject},
};
use crate::error::Result;

impl Diagnosis {
    /// Opens the diagnosis on the calling thread until the returned guard is dropped. The diagnosis
    /// records the accesses and transfers of the calling thread, and of the threads of data layers
    /// and solvers that are built while the diagnosis is open. Every open diagnosis of a thread
    /// records each event.
    pub fn open(&self) -> DiagnosisGuard {
        let watch = DiagnosisWatch::new();
        with_context(|context| context.diagnoses.push(self.clone()));
        DiagnosisGuard { diagnosis: self.clone(), _watch: watch }
    }
}

/// A guard that keeps a [`Diagnosis`] open on the thread that opened the diagnosis.
///
/// ```
/// use cortado::{SimulatedDevice, SyncedMemory, ledger::Diagnosis};
///
/// let (diagnosis, mut memory) = (Diagnosis::new(), SyncedMemory::new(&SimulatedDevice::new(), 4));
/// memory.host_mut()?.fill(1);
/// let guard = diagnosis.open();
/// memory.device()?;
/// drop(guard);
/// memory.device_mut()?;
/// memory.host()?; // a download after the diagnosis is closed
/// assert_eq!(diagnosis.transfers().len(), 1);
/// # Ok::<(), cortado::Error>(())
/// ```
#[must_use = "dropping the guard closes the diagnosis"]
#[derive(Debug)]
pub struct DiagnosisGuard {
    diagnosis: Diagnosis,
    _watch: DiagnosisWatch,
}

impl Drop for DiagnosisGuard {
    fn drop(&mut self) {
        with_context(|context| {
            let is_this_diagnosis = |diagnosis: &Diagnosis| diagnosis.is_same(&self.diagnosis);
            if let Some(index) = context.diagnoses.iter().rposition(is_this_diagnosis) {
                context.diagnoses.remove(index);
            }
        });
    }
}

/// Runs `work` with an open [`Diagnosis`], and returns the result of `work` and the diagnosis.
///
/// ```
/// use cortado::{ledger::{self, Waste}, prelude::*};
///
/// let device = SimulatedDevice::new();
/// let x = Blob::from_slice(&device, &[2], &[3.0f32, -4.0])?;
/// let (norm, diagnosis) = ledger::diagnose(|| {
///     x.scale_data(2.0)?;
///     let norm = x.data_mut()?.host_mut()?.iter().map(|x| x.abs()).sum::<f32>();
///     x.scale_data(1.0 / norm)?; // uploads `x` again, because `host_mut` made it stale
///     Ok(norm)
/// })?;
/// assert_eq!(norm, 14.0);
/// let [finding] = &diagnosis.findings()[..] else { panic!("one finding") };
/// assert_eq!((finding.waste, finding.copies, finding.bytes), (Waste::RoundTrip, 1, 8));
/// assert_eq!(finding.other.as_ref().unwrap().call.site.file(), file!());
/// # Ok::<(), cortado::Error>(())
/// ```
///
/// # Errors
/// Propagates errors from `work`.
pub fn diagnose<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, Diagnosis)> {
    let diagnosis = Diagnosis::new();
    let guard = diagnosis.open();
    let result = work()?;
    drop(guard);
    Ok((result, diagnosis))
}

/// Sets the calling thread's policy for needless work of the kind `waste` until the returned guard
/// is dropped. If policies are nested, the innermost policy applies.
///
/// The access, transfer or wait that reveals denied work returns
/// [`Error::Denied`](crate::Error::Denied), which names both places, and the value of the memory is
/// unchanged. Like a diagnosis, a policy other than [`Policy::Allow`] makes memories record their
/// accesses, and computes a hash of each transfer.
///
/// ```
/// use cortado::{ledger::{self, Policy, Waste}, prelude::*};
///
/// let x = Blob::from_slice(&SimulatedDevice::new(), &[2], &[1.0f32, 2.0])?;
/// let _policy = ledger::set_waste_policy(Waste::RoundTrip, Policy::Deny);
/// x.scale_data(2.0)?;
/// x.data_mut()?.host_mut()?;
/// let error = x.scale_data(2.0).unwrap_err().to_string();
/// assert!(error.contains("round trip") && error.contains("written without a change by"));
/// assert_eq!(x.to_vec()?, [2.0, 4.0]);
/// # Ok::<(), cortado::Error>(())
/// ```
pub fn set_waste_policy(waste: Waste, policy: Policy) -> WastePolicyGuard {
    let diagnosis = (policy != Policy::Allow).then(|| Diagnosis::new().open());
    let policy = PolicyGuard::new(Subject::Waste(waste), policy);
    WastePolicyGuard { _policy: policy, _diagnosis: diagnosis }
}

/// A guard that keeps a [`Policy`] for needless work in force on the thread that set the policy.
///
/// ```
/// use cortado::ledger::{Policy, Waste, set_waste_policy};
///
/// let policies = Waste::ALL.map(|waste| set_waste_policy(waste, Policy::Warn));
/// drop(policies);
/// ```
#[must_use = "dropping the guard restores the previous policy"]
#[derive(Debug)]
pub struct WastePolicyGuard {
    _policy: PolicyGuard,
    _diagnosis: Option<DiagnosisGuard>,
}
