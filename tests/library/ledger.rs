//! Tests of the ledger: attribution of transfers and fallbacks to kernel calls, and policies per
//! thread.

use crate::custom_backend::Remote;
use cortado::{
    AnyDevice, Blob, CpuDevice, Device, Element, Error, Head, Memory, Result, SimulatedDevice, Src,
    SyncedMemory, View, ViewMut, assert_transfers,
    kernel::{Blas, Elementwise, Reductions, Update, fallback},
    ledger::{self, Entry, EventKind, Ledger, LedgerContext, Policy, Total},
    op::{Axis, Binary, Gemm, Reduce, Regularization, SolverUpdate, Unary, UpdateRule},
};
use std::collections::BTreeSet;

/// Returns a blob whose data are valid only on the device.
fn on_device<D: Device>(device: &D, values: Vec<f32>) -> Blob<f32, D> {
    let blob = Blob::from_vec(device, &[values.len()], values).unwrap();
    blob.data_mut().unwrap().view_mut().device_mut().unwrap();
    blob
}

fn product<D: Device>(device: &D, [a, b, c]: [&Blob<f32, D>; 3]) -> Result<()> {
    let (a, b, mut c) = (a.data()?, b.data()?, c.data_mut()?);
    device.gemm(&Gemm::new(2, 2, 2), a.view(), b.view(), c.view_mut())
}

#[test]
fn transfers_are_attributed_to_kernel_element_type_and_call_site() {
    let [a, b] = [[1.0; 4], [2.0; 4]].map(|v| on_device(&Remote, v.to_vec()));
    let c = Blob::new(&Remote, &[4]).unwrap();
    let ledger = Ledger::new();
    let guard = ledger.open();
    product(&Remote, [&a, &b, &c]).unwrap();
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4]);
    let line = line!() + 1;
    c.data().unwrap().view().device().unwrap();
    drop(guard);
    // A closed ledger records no transfers.
    a.data_mut().unwrap().view_mut().device_mut().unwrap();

    let entries = ledger.entries();
    let find = |kind, kernel| -> &Entry {
        let mut matches = entries.iter().filter(|e| (e.kind, e.kernel) == (kind, kernel));
        let entry = matches.next().unwrap();
        assert!(matches.next().is_none());
        entry
    };
    assert_eq!(entries.len(), 3, "{ledger}");
    let gemm = find(EventKind::Download, Some("gemm"));
    assert_eq!((gemm.count, gemm.bytes, gemm.element), (2, 32, "f32"));
    assert_eq!(gemm.device, "remote");
    assert!(gemm.site.file().ends_with("ledger.rs"), "{}", gemm.site);
    let fallback = find(EventKind::Fallback, Some("gemm"));
    assert_eq!((fallback.count, fallback.bytes, fallback.site), (1, 0, gemm.site));
    let direct_upload = find(EventKind::Upload, None);
    assert_eq!(
        (direct_upload.count, direct_upload.bytes, direct_upload.site.line()),
        (1, 16, line)
    );
    assert_eq!(ledger.total(EventKind::Upload), Total { count: 1, bytes: 16 });

    let table = ledger.to_string();
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("gemm") && table.contains("(direct access)"), "{table}");
    ledger.clear();
    assert!(ledger.entries().is_empty());
    let empty_report = "no copies between host and device, no fallbacks to the host\n";
    assert_eq!(ledger.to_string(), empty_report);
}

#[test]
fn the_ledger_of_the_cpu_has_no_transfers_and_no_fallbacks() {
    let device = CpuDevice::new();
    let [a, b, c] = [1.0, 2.0, 3.0].map(|v| on_device(&device, vec![v; 4]));
    let _policies =
        (ledger::set_transfer_policy(Policy::Deny), ledger::set_fallback_policy(Policy::Deny));
    assert_transfers!(uploads: 0, downloads: 0, { product(&device, [&a, &b, &c]).unwrap() });
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4]);
}

#[test]
fn denied_transfers_and_fallbacks_are_errors_and_change_nothing() {
    let [a, b, c] = [1.0, 2.0, 7.0].map(|v| on_device(&Remote, vec![v; 4]));
    let expect_denied = |result: Result<()>, word: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error.root(), Error::Denied { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    {
        let _policy = ledger::set_fallback_policy(Policy::Deny);
        expect_denied(
            product(&Remote, [&a, &b, &c]),
            "fallback to the host on `remote`: gemm of f32 at",
        );
    }
    {
        let _policy = ledger::set_transfer_policy(Policy::Deny);
        expect_denied(
            product(&Remote, [&a, &b, &c]),
            "download of 16 bytes on `remote` by gemm of f32",
        );
        let direct_access = c.data().unwrap().view().host().map(drop);
        expect_denied(direct_access, "download of 16 bytes on `remote` at tests");
        let _inner_policy = ledger::set_transfer_policy(Policy::Warn);
        assert_eq!(
            a.data().unwrap().host().unwrap(),
            [1.0; 4],
            "the policy that was set last must apply"
        );
    }
    assert_eq!(c.data().unwrap().head(), Head::HeadAtDevice);
    assert_eq!(
        c.data().unwrap().host().unwrap(),
        [7.0; 4],
        "a denied kernel must not change its output"
    );
    product(&Remote, [&a, &b, &c]).unwrap();
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4], "dropped policies must not apply");
}

#[test]
fn policies_and_ledgers_apply_to_other_threads_only_through_a_context() {
    let ledger = Ledger::new();
    let _guard = ledger.open();
    let _policy = ledger::set_transfer_policy(Policy::Deny);
    let copy = || {
        let mut memory = SyncedMemory::new(&Remote, 8);
        memory.host_mut().unwrap().fill(1);
        memory.device().map(drop)
    };
    assert!(copy().is_err());
    std::thread::scope(|scope| scope.spawn(copy).join().unwrap()).unwrap();
    assert_eq!(ledger.total(EventKind::Upload).count, 0);
    let context = LedgerContext::current();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let _context = context.enter();
            let denied_copy = copy();
            let _inner_policy = ledger::set_transfer_policy(Policy::Allow);
            (denied_copy, copy())
        });
        let (denied_copy, allowed) = thread.join().unwrap();
        assert!(denied_copy.is_err() && allowed.is_ok());
    });
    assert_eq!(ledger.total(EventKind::Upload), Total { count: 1, bytes: 8 });
}

#[test]
fn transfers_of_a_native_kernel_are_attributed_to_the_kernel() {
    let ledger = Ledger::new();
    let a = Blob::from_vec(&Remote, &[2], vec![1.0f32, 2.0]).unwrap();
    {
        let _guard = ledger.open();
        let _kernel = ledger::enter_kernel("doubled", "f32");
        a.data().unwrap().view().device().unwrap();
        let sum = fallback::asum(&Remote, a.data().unwrap().view()).unwrap();
        assert_eq!(sum, 3.0);
        a.data_mut().unwrap().view_mut().device_mut().unwrap();
        a.data().unwrap().host().unwrap();
    }
    let recorded: Vec<_> = ledger.entries().iter().map(|e| (e.kernel.unwrap(), e.kind)).collect();
    let transfers = [("doubled", EventKind::Upload), ("doubled", EventKind::Download)];
    assert_eq!(recorded, [&[("asum", EventKind::Fallback)], &transfers[..]].concat(), "{ledger}");
}

/// Returns the kernel names that a ledger records for elementwise functions, a reduction and a
/// solver update on an `AnyDevice`.
fn recorded_names(device: &impl Device) -> Vec<&'static str> {
    let device = AnyDevice::new(device);
    let [x, mut y] = [(); 2].map(|()| SyncedMemory::new(&device, 16));
    let mut z = SyncedMemory::new(&device, 16);
    y.host_mut().unwrap();
    z.host_mut().unwrap();
    let ledger = Ledger::new();
    let guard = ledger.open();
    let x = View::<f32, _>::new(&x, 4).unwrap();
    fn view(memory: &mut SyncedMemory<AnyDevice>) -> ViewMut<'_, f32, AnyDevice> {
        ViewMut::new(memory, 4).unwrap()
    }
    device.unary(Unary::Exp, Src::InPlace, view(&mut y)).unwrap();
    y.host_mut().unwrap();
    device.binary(Binary::ReluGrad { slope: 0.0 }, Src::InPlace, x, view(&mut y)).unwrap();
    y.host_mut().unwrap();
    let input = View::<f32, _>::new(&z, 4).unwrap();
    device.reduce(Reduce::Max, &Axis::new(4, 1, 1).unwrap(), input, view(&mut y)).unwrap();
    y.host_mut().unwrap();
    let (regularization, rule) = (Regularization::L2, UpdateRule::Sgd { momentum: 0.5 });
    let op = SolverUpdate { rate: 0.5, scale: 1.0, decay: 0.0, regularization, rule };
    device.solver_update(&op, x, view(&mut y), None, &mut [view(&mut z)]).unwrap();
    drop(guard);
    assert!(ledger.unscoped_kernels().is_empty());
    let names: BTreeSet<_> = ledger.entries().iter().filter_map(|entry| entry.kernel).collect();
    names.into_iter().collect()
}

#[test]
fn ledgers_name_the_function_of_a_kernel_on_every_device() {
    let names = ["binary_relu_grad", "reduce_max", "solver_update_sgd", "unary_exp"];
    assert_eq!(recorded_names(&Remote), names, "fallbacks");
    assert_eq!(recorded_names(&SimulatedDevice::new()), names, "native kernels");
}

#[test]
fn a_native_kernel_without_its_ledger_scope_is_recorded_as_unscoped() {
    /// Device whose kernel `scal` enters the ledger scope of the kernel `self.0`, or no scope if
    /// `self.0` is `None`.
    #[derive(Clone, Debug)]
    struct Unscoped(Option<&'static str>);

    impl Memory for Unscoped {
        type Buffer = Vec<u8>;
        fn name(&self) -> String {
            "unscoped".into()
        }
        fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
            Ok(vec![0; bytes])
        }
        fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
            Remote.upload(src, dst, at)
        }
        fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
            Remote.download(src, at, dst)
        }
    }

    impl Blas for Unscoped {
        fn scal<T: Element>(&self, _: T::Acc, mut x: ViewMut<'_, T, Self>) -> Result<()> {
            let _scope = self.0.map(|name| ledger::enter_kernel(name, T::DTYPE.name()));
            x.device_mut().map(drop)
        }
    }
    cortado::families!(
        Unscoped: Elementwise, Reductions, Random, Conv, Pooling, Normalize, Losses, Indexing,
        Update
    );

    for (scope, is_unscoped) in [(None, true), (Some("axpy"), true), (Some("scal"), false)] {
        let device = AnyDevice::new(&Unscoped(scope));
        let mut x = SyncedMemory::new(&device, 16);
        let ledger = Ledger::new();
        let _guard = ledger.open();
        let line = line!() + 1;
        device.scal(2.0f32, ViewMut::<f32, _>::new(&mut x, 4).unwrap()).unwrap();
        let found = ledger.unscoped_kernels();
        let found: Vec<_> = found.iter().map(|call| (call.name, call.site.line())).collect();
        assert_eq!(found, if is_unscoped { vec![("scal", line)] } else { vec![] }, "{scope:?}");
    }
}

#[test]
fn a_fallback_with_invalid_operands_does_not_change_its_output() {
    let (a, b) = (on_device(&Remote, vec![1.0; 4]), on_device(&Remote, vec![2.0; 4]));
    let c = on_device(&Remote, vec![7.0; 3]);
    let error = product(&Remote, [&a, &b, &c]).unwrap_err();
    assert!(matches!(error, Error::Length { operand: "c", .. }), "{error}");
    assert_eq!(c.data().unwrap().host().unwrap(), [7.0; 3]);
    let short_output = Blob::<f32, _>::new(&Remote, &[2]).unwrap();
    let (x, mut y) = (a.data().unwrap(), short_output.data_mut().unwrap());
    let result = Remote.copy(x.view(), y.view_mut());
    drop(y);
    assert!(matches!(result, Err(Error::Length { .. })));
    assert_eq!(short_output.data().unwrap().host().unwrap(), [0.0; 2]);
}
