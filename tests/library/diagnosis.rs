//! Tests of the transfer doctor: twelve programs, each with one needless transfer, write or wait,
//! and a training run without any.

use cortado::{
    AnyDevice, Device, Element, Error, Memory, Result, SimulatedDevice, Src, SyncedMemory, ViewMut,
    blob::matmul,
    kernel::{Blas, Elementwise, slices},
    ledger::{self, Diagnosis, DiagnosisOptions, EventKind, Finding, Ledger, Policy, Waste},
    op::{Gemm, Unary},
    prelude::*,
};

/// Device with separate memory. `unary` is native except for the sigmoid, and `scal` is native; all
/// other kernels fall back to the host.
#[derive(Clone, Debug)]
struct Partial;

impl Memory for Partial {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "partial".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

cortado::families!(Partial: Reductions, Random, Conv, Pooling, Normalize, Losses, Indexing, Update);

/// Replaces each element in `bytes` by the result of `compute` for it.
fn update<T: Element>(
    bytes: &mut [u8],
    compute: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<()> {
    let elements = bytes.chunks_exact(size_of::<T>());
    let mut elements: Vec<T> = elements.map(|bytes| T::read_bytes(bytes).unwrap()).collect();
    compute(&mut elements)?;
    bytes.copy_from_slice(T::bytes_of(&elements));
    Ok(())
}

impl Blas for Partial {
    fn scal<T: Element>(&self, alpha: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
        let _kernel = ledger::enter_kernel("scal", T::DTYPE.name());
        let x = x.device_mut()?;
        update(&mut x.buffer[x.offset..x.offset + x.bytes], |elements| {
            slices::scal::<T>(self.host_workers(), alpha, elements)
        })
    }
}

impl Elementwise for Partial {
    #[track_caller]
    fn unary<T: Element>(
        &self,
        op: Unary<T::Acc>,
        x: Src<'_, T, Self>,
        mut y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        if matches!(op, Unary::Sigmoid) {
            return cortado::kernel::fallback::unary(self, op, x, y);
        }
        let _kernel = ledger::enter_kernel(op.kernel_name(), T::DTYPE.name());
        let source = match x {
            Src::InPlace => None,
            Src::View(x) => {
                let x = x.device()?;
                Some(&x.buffer[x.offset..x.offset + x.bytes])
            }
        };
        let y = if source.is_some() { y.device_write_only()? } else { y.device_mut()? };
        let bytes = &mut y.buffer[y.offset..y.offset + y.bytes];
        if let Some(source) = source {
            bytes.copy_from_slice(source);
        }
        update(bytes, |elements| slices::unary_in_place::<T>(self.host_workers(), op, elements))
    }
}

/// Needless work of a program: its kind, the two source lines, and the bytes and copies that the
/// program would save.
type Expected = (Waste, [u32; 2], u64, u64);

/// A program on a device, with the needless work that the doctor must find.
type Program = fn() -> Result<Expected>;

/// Returns the simulated device, as nets use it.
fn simulated() -> AnyDevice {
    AnyDevice::new(&SimulatedDevice::new())
}

fn numbers(device: &AnyDevice) -> Result<Blob<f32>> {
    Blob::from_slice(device, &[4], &[1.0, 2.0, 3.0, 4.0])
}

fn read_through_host_mut() -> Result<Expected> {
    let x = numbers(&simulated())?;
    x.scale_data(2.0)?;
    let [write, read] = [line!() + 1, line!() + 2];
    assert_eq!(x.data_mut()?.host_mut()?[0], 2.0);
    x.scale_data(2.0)?;
    Ok((Waste::RoundTrip, [read, write], 16, 1))
}

fn kernel_that_changes_nothing() -> Result<Expected> {
    let x = numbers(&simulated())?;
    let [write, read] = [line!() + 1, line!() + 2];
    x.scale_data(1.0)?;
    assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0, 4.0]);
    Ok((Waste::RoundTrip, [read, write], 16, 1))
}

fn constants_written_in_each_step() -> Result<Expected> {
    let device = simulated();
    let (mask, y) = (Blob::<f32>::new(&device, &[4])?, numbers(&device)?);
    let [write, read] = [line!() + 2, line!() + 3];
    for _ in 0..3 {
        mask.data_mut()?.host_write_only()?.copy_from_slice(&[1.0, 0.0, 1.0, 0.0]);
        device.axpy(1.0, mask.data()?.view(), y.data_mut()?.view_mut())?;
    }
    Ok((Waste::SentAgain, [read, write], 32, 2))
}

fn constants_allocated_in_each_step() -> Result<Expected> {
    let device = simulated();
    let y = numbers(&device)?;
    let [write, read] = [line!() + 2, line!() + 3];
    for _ in 0..3 {
        let mask = Blob::from_slice(&device, &[4], &[1.0f32, 0.0, 1.0, 0.0])?;
        device.axpy(1.0, mask.data()?.view(), y.data_mut()?.view_mut())?;
    }
    Ok((Waste::SentAgain, [read, write], 32, 2))
}

fn zeros_before_a_product() -> Result<Expected> {
    let device = simulated();
    let (a, c) = (numbers(&device)?, Blob::<f32>::new(&device, &[4])?);
    let [write, overwrite] = [line!() + 1, line!() + 3];
    device.fill(0.0, c.data_mut()?.view_mut())?;
    let (x, op) = (a.data()?, Gemm::new(2, 2, 2));
    device.gemm(&op, x.view(), x.view(), c.data_mut()?.view_mut())?;
    assert_eq!(c.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
    Ok((Waste::OverwrittenUnread, [overwrite, write], 16, 0))
}

fn prefetch_before_a_write() -> Result<Expected> {
    let device = SimulatedDevice::new();
    let mut memory = SyncedMemory::new(&device, 8);
    memory.host_mut()?.fill(1);
    let [prefetch, overwrite] = [line!() + 1, line!() + 2];
    memory.prefetch(&device.fork_queue()?)?;
    memory.host_write_only()?.fill(2);
    memory.device()?;
    Ok((Waste::OverwrittenUnread, [overwrite, prefetch], 8, 1))
}

fn fallback_between_kernels() -> Result<Expected> {
    let x = Blob::from_slice(&Partial, &[4], &[1.0f32, 2.0, 3.0, 4.0])?;
    x.scale_data(2.0)?;
    let [fallback, next] = [line!() + 1, line!() + 2];
    Partial.unary(Unary::Sigmoid, Src::InPlace, x.data_mut()?.view_mut())?;
    x.scale_data(2.0)?;
    Ok((Waste::Fallback, [fallback, next], 32, 2))
}

/// The fallback reads a whole memory, and its result is smaller.
fn fallback_of_a_reduction() -> Result<Expected> {
    let x = Blob::from_slice(&Partial, &[4], &[1.0f32, 2.0, 3.0, 4.0])?;
    x.scale_data(2.0)?;
    let [fallback, next] = [line!() + 1, line!() + 2];
    let sum = x.sum(0)?;
    sum.scale_data(2.0)?;
    Ok((Waste::Fallback, [fallback, next], 20, 2))
}

fn two_halves_overwritten() -> Result<Expected> {
    let device = simulated();
    let x = numbers(&device)?;
    let mut data = x.data_mut()?;
    let [fetch, last] = [line!() + 1, line!() + 2];
    device.fill(5.0, data.view_mut().slice(0..2)?)?;
    device.fill(6.0, data.view_mut().slice(2..4)?)?;
    Ok((Waste::FetchedOverwritten, [fetch, last], 16, 1))
}

fn constant_stored_through_host_mut() -> Result<Expected> {
    let x = numbers(&simulated())?;
    x.scale_data(2.0)?;
    let line = line!() + 1;
    x.data_mut()?.host_mut()?.fill(0.5);
    x.scale_data(3.0)?;
    Ok((Waste::FetchedOverwritten, [line; 2], 16, 1))
}

fn two_waits() -> Result<Expected> {
    let device = simulated();
    numbers(&device)?.scale_data(2.0)?;
    let [first, second] = [line!() + 1, line!() + 2];
    device.synchronize()?;
    device.synchronize()?;
    Ok((Waste::NeedlessWait, [second, first], 0, 0))
}

fn wait_after_a_download() -> Result<Expected> {
    let device = simulated();
    let x = numbers(&device)?;
    x.scale_data(2.0)?;
    let [download, wait] = [line!() + 1, line!() + 2];
    assert_eq!(x.to_vec()?, [2.0, 4.0, 6.0, 8.0]);
    device.synchronize()?;
    Ok((Waste::NeedlessWait, [wait, download], 0, 0))
}

const PROGRAMS: [Program; 12] = [
    read_through_host_mut,
    kernel_that_changes_nothing,
    constants_written_in_each_step,
    constants_allocated_in_each_step,
    zeros_before_a_product,
    prefetch_before_a_write,
    fallback_between_kernels,
    fallback_of_a_reduction,
    two_halves_overwritten,
    constant_stored_through_host_mut,
    two_waits,
    wait_after_a_download,
];

#[test]
fn the_doctor_names_the_only_waste_of_each_program_with_its_lines() {
    for program in PROGRAMS {
        let ((waste, lines, bytes, copies), diagnosis) = ledger::diagnose(program).unwrap();
        let [finding] = &diagnosis.findings()[..] else { panic!("{waste}: {diagnosis}") };
        let other = finding.other.as_ref().unwrap();
        let sites = [finding.place.call.site, other.call.site];
        assert_eq!((finding.waste, sites.map(|site| site.line())), (waste, lines), "{diagnosis}");
        assert_eq!((finding.bytes, finding.copies), (bytes, copies), "{diagnosis}");
        let text = diagnosis.to_string();
        for line in lines {
            assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
        }
    }
}

#[test]
fn a_policy_denies_the_waste_of_each_program_and_no_other_kind() {
    for program in PROGRAMS {
        let ((expected, lines, ..), _) = ledger::diagnose(program).unwrap();
        for waste in Waste::ALL {
            let _policy = ledger::set_waste_policy(waste, Policy::Deny);
            match program() {
                Ok(_) => assert_ne!(waste, expected),
                Err(error) => {
                    assert!(matches!(error.root(), Error::Denied { .. }), "{error}");
                    let text = error.to_string();
                    assert!(waste == expected && text.contains(&waste.to_string()), "{text}");
                    for line in lines {
                        assert!(text.contains(&format!("{}:{line}:", file!())), "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_denied_transfer_changes_nothing() {
    let x = numbers(&simulated()).unwrap();
    let _policy = ledger::set_waste_policy(Waste::RoundTrip, Policy::Deny);
    x.scale_data(2.0).unwrap();
    x.data_mut().unwrap().host_mut().unwrap();
    for _ in 0..2 {
        x.scale_data(2.0).unwrap_err();
        assert_eq!(x.data_head().unwrap(), cortado::Head::HeadAtHost);
    }
    assert_eq!(x.to_vec().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    let _allow = ledger::set_waste_policy(Waste::RoundTrip, Policy::Allow);
    x.scale_data(2.0).unwrap();
    assert_eq!(x.to_vec().unwrap(), [4.0, 8.0, 12.0, 16.0]);
}

#[test]
fn transfers_name_the_read_and_the_write_that_caused_them() {
    let device = simulated();
    let x = numbers(&device).unwrap();
    x.set_name("x").unwrap();
    let ledger = Ledger::new();
    let _ledger_guard = ledger.open();
    let ((), diagnosis) = ledger::diagnose(|| {
        x.scale_data(2.0)?;
        x.to_vec().map(drop)
    })
    .unwrap();
    let [download, upload] = &diagnosis.transfers()[..] else { panic!("{diagnosis}") };
    assert_eq!((upload.kind, upload.reader.call.name), (EventKind::Upload, "scal"));
    assert_eq!(upload.writer, None, "the diagnosis was opened after the write");
    assert_eq!((download.kind, download.reader.call.name), (EventKind::Download, ""));
    assert_eq!(download.writer.as_ref(), Some(&upload.reader));
    assert!([download, upload].iter().all(|row| row.memory.as_deref() == Some("x")));
    assert_eq!((upload.count, upload.bytes), (1, ledger.total(EventKind::Upload).bytes));
    assert!(diagnosis.findings().is_empty(), "{diagnosis}");
}

#[test]
fn accesses_without_a_diagnosis_are_not_blamed() {
    let x = numbers(&simulated()).unwrap();
    let diagnosis = Diagnosis::new();
    {
        let _guard = diagnosis.open();
        x.scale_data(2.0).unwrap();
        x.to_vec().unwrap();
    }
    x.data_mut().unwrap().host_mut().unwrap();
    let _guard = diagnosis.open();
    x.scale_data(2.0).unwrap();
    assert!(diagnosis.findings().is_empty(), "{diagnosis}");
    let transfers = diagnosis.transfers();
    let uploads = transfers.iter().filter(|row| row.kind == EventKind::Upload);
    let writers: Vec<_> = uploads.map(|row| &row.writer).collect();
    assert_eq!(writers, [&None, &None], "{diagnosis}");
}

#[test]
fn without_contents_only_wastes_of_contents_are_missed() {
    for program in PROGRAMS {
        let options = DiagnosisOptions { compare_contents: false };
        let diagnosis = Diagnosis::with_options(options);
        let guard = diagnosis.open();
        let (waste, ..) = program().unwrap();
        drop(guard);
        let found: Vec<Waste> = diagnosis.findings().iter().map(|finding| finding.waste).collect();
        let needs_contents = matches!(waste, Waste::RoundTrip | Waste::SentAgain)
            || std::ptr::fn_addr_eq(program, constant_stored_through_host_mut as Program);
        assert_eq!(found, if needs_contents { vec![] } else { vec![waste] }, "{diagnosis}");
    }
}

/// Computes with blobs as a careful program does.
fn careful_program<D: Device>(device: &D) -> Result<f32> {
    let a = Blob::from_slice(device, &[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
    let mut sum = 0.0;
    for step in 0..3 {
        let b = Blob::from_slice(device, &[2, 2], &[step as f32, 1.0, 0.0, 1.0])?;
        let product = matmul(&a, &b)?;
        product.apply(Unary::Sqr)?.sum(0)?;
        sum += product.to_vec()?.iter().sum::<f32>();
    }
    device.synchronize()?;
    Ok(sum)
}

#[test]
fn a_careful_program_has_no_findings() {
    let findings = |diagnosis: Diagnosis| -> Vec<Finding> { diagnosis.findings() };
    let (_, diagnosis) = ledger::diagnose(|| careful_program(&SimulatedDevice::new())).unwrap();
    assert_eq!(findings(diagnosis), []);
    let cpu = CpuDevice::with_threads(1).unwrap();
    let (_, diagnosis) = ledger::diagnose(|| careful_program(&cpu)).unwrap();
    assert_eq!((diagnosis.transfers(), findings(diagnosis)), (vec![], vec![]));
}

#[cfg(feature = "net")]
mod nets {
    use super::*;
    use crate::digits::train_digits;
    use cortado::{net::Net, proto::parse_text};

    #[test]
    fn a_fallback_in_a_net_is_named_with_its_kernel_and_layer() {
        let definition = r#"
            layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }
            layer { name: "before" type: "Power" bottom: "x" top: "a" power_param { scale: 2 } }
            layer { name: "squash" type: "Sigmoid" bottom: "a" top: "b" }
            layer { name: "after" type: "Power" bottom: "b" top: "c" power_param { scale: 2 } }"#;
        let definition = parse_text(definition, "net").unwrap();
        let mut net = Net::<f32>::builder(&Partial).build(&definition).unwrap();
        let x = net.blob("x").unwrap().share();
        x.data_mut().unwrap().host_mut().unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        let (_, diagnosis) = ledger::diagnose(|| net.forward()).unwrap();
        let [finding] = &diagnosis.findings()[..] else { panic!("{diagnosis}") };
        let Finding { waste, place, other, memory, copies, .. } = finding;
        assert_eq!((*waste, place.call.name, *copies), (Waste::Fallback, "unary_sigmoid", 2));
        assert_eq!(memory.as_deref(), Some("b"));
        let other = other.as_ref().unwrap();
        let layers = [place, other].map(|place| place.layer.as_ref().unwrap().to_string());
        assert_eq!(layers, ["layer `squash`, forward", "layer `after`, forward"]);
        assert!(place.is_fallback && !other.is_fallback);
    }

    #[test]
    fn training_of_lenet_on_a_discrete_device_wastes_nothing() {
        let device = SimulatedDevice::with_threads(1).unwrap();
        let ledger = Ledger::new();
        let _guard = ledger.open();
        let (_, diagnosis) = ledger::diagnose(|| train_digits(&device)).unwrap();
        assert!(diagnosis.findings().is_empty(), "{diagnosis}");
        // Every transfer of the ledger has a cause.
        for kind in [EventKind::Upload, EventKind::Download] {
            let transfers = diagnosis.transfers();
            let rows = transfers.iter().filter(|row| row.kind == kind);
            let sum = rows.fold((0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.bytes));
            let total = ledger.total(kind);
            assert_eq!(sum, (total.count, total.bytes), "{kind}");
        }
    }
}
