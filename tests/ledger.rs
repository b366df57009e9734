//! The ledger: who copied what and where, and what a thread lets happen.

use cortado::{
    Blob, CpuDevice, Device, Error, Head, Memory, Result, SyncedMemory, assert_transfers, families,
    kernel::fallback,
    ledger::{self, Entry, EventKind, Ledger, LedgerContext, Policy, Total},
    op::Gemm,
};

/// Memory of its own, kernels all on the host.
#[derive(Clone, Debug)]
struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
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

families!(Remote);

/// A blob whose current value is on the device.
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
fn copies_are_on_the_account_of_kernel_type_and_call() {
    let [a, b] = [[1.0; 4], [2.0; 4]].map(|v| on_device(&Remote, v.to_vec()));
    let c = Blob::new(&Remote, &[4]).unwrap();
    let ledger = Ledger::new();
    let open = ledger.open();
    product(&Remote, [&a, &b, &c]).unwrap();
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4]);
    let line = line!() + 1;
    c.data().unwrap().view().device().unwrap();
    drop(open);
    a.data_mut().unwrap().view_mut().device_mut().unwrap(); // not recorded: the ledger is closed

    let entries = ledger.entries();
    let find = |kind, kernel| -> &Entry {
        let mut found = entries.iter().filter(|e| (e.kind, e.kernel) == (kind, kernel));
        let only = found.next().unwrap();
        assert!(found.next().is_none());
        only
    };
    assert_eq!(entries.len(), 3, "{ledger}");
    let gemm = find(EventKind::Download, Some("gemm"));
    assert_eq!((gemm.count, gemm.bytes, gemm.element), (2, 32, "f32"));
    assert_eq!(gemm.device, "remote");
    assert!(gemm.site.file().ends_with("ledger.rs"), "{}", gemm.site);
    let fallback = find(EventKind::Fallback, Some("gemm"));
    assert_eq!((fallback.count, fallback.bytes, fallback.site), (1, 0, gemm.site));
    let direct = find(EventKind::Upload, None);
    assert_eq!((direct.count, direct.bytes, direct.site.line()), (1, 16, line));
    assert_eq!(ledger.total(EventKind::Upload), Total { count: 1, bytes: 16 });

    let table = ledger.to_string();
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("gemm") && table.contains("(direct access)"), "{table}");
    ledger.clear();
    assert!(ledger.entries().is_empty());
}

#[test]
fn the_cpu_neither_copies_nor_falls_back() {
    let device = CpuDevice::new();
    let [a, b, c] = [1.0, 2.0, 3.0].map(|v| on_device(&device, vec![v; 4]));
    let _rulings =
        (ledger::set_transfer_policy(Policy::Deny), ledger::set_fallback_policy(Policy::Deny));
    assert_transfers!(uploads: 0, downloads: 0, { product(&device, [&a, &b, &c]).unwrap() });
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4]);
}

#[test]
fn what_is_denied_does_not_happen() {
    let [a, b, c] = [1.0, 2.0, 7.0].map(|v| on_device(&Remote, vec![v; 4]));
    let refused = |result: Result<()>, word: &str| {
        let error = result.unwrap_err();
        assert!(matches!(error.root(), Error::Denied { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    };
    {
        let _ruling = ledger::set_fallback_policy(Policy::Deny);
        refused(product(&Remote, [&a, &b, &c]), "fallback to the host on `remote`: gemm of f32 at");
    }
    {
        let _ruling = ledger::set_transfer_policy(Policy::Deny);
        refused(product(&Remote, [&a, &b, &c]), "download of 16 bytes on `remote` by gemm of f32");
        let direct = c.data().unwrap().view().host().map(drop);
        refused(direct, "download of 16 bytes on `remote` at tests");
        let _inner = ledger::set_transfer_policy(Policy::Warn);
        assert_eq!(a.data().unwrap().host().unwrap(), [1.0; 4], "the innermost ruling counts");
    }
    assert_eq!(c.data().unwrap().head(), Head::HeadAtDevice);
    assert_eq!(c.data().unwrap().host().unwrap(), [7.0; 4], "nothing was changed");
    product(&Remote, [&a, &b, &c]).unwrap();
    assert_eq!(c.data().unwrap().host().unwrap(), [4.0; 4], "the rulings have ended");
}

#[test]
fn rulings_and_ledgers_are_of_a_thread_unless_handed_on() {
    let ledger = Ledger::new();
    let _open = ledger.open();
    let _ruling = ledger::set_transfer_policy(Policy::Deny);
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
        let handed_on = scope.spawn(move || {
            let _entered = context.enter();
            let denied = copy();
            let _inner = ledger::set_transfer_policy(Policy::Allow);
            (denied, copy())
        });
        let (denied, allowed) = handed_on.join().unwrap();
        assert!(denied.is_err() && allowed.is_ok());
    });
    assert_eq!(ledger.total(EventKind::Upload), Total { count: 1, bytes: 8 });
}

/// A device whose own kernel meets memory that is on the host.
#[test]
fn a_devices_own_kernel_has_an_account_too() {
    let ledger = Ledger::new();
    let a = Blob::from_vec(&Remote, &[2], vec![1.0f32, 2.0]).unwrap();
    {
        let _open = ledger.open();
        let _kernel = ledger::enter_kernel("doubled", "f32");
        a.data().unwrap().view().device().unwrap();
        let inner = fallback::asum(&Remote, a.data().unwrap().view()).unwrap();
        assert_eq!(inner, 3.0);
        a.data_mut().unwrap().view_mut().device_mut().unwrap();
        a.data().unwrap().host().unwrap();
    }
    let seen: Vec<_> = ledger.entries().iter().map(|e| (e.kernel.unwrap(), e.kind)).collect();
    let doubled = [("doubled", EventKind::Upload), ("doubled", EventKind::Download)];
    assert_eq!(seen, [&[("asum", EventKind::Fallback)], &doubled[..]].concat(), "{ledger}");
}

/// A kernel that refuses its operands leaves what it was to overwrite alone.
#[test]
fn a_refused_kernel_loses_nothing() {
    let (a, b) = (on_device(&Remote, vec![1.0; 4]), on_device(&Remote, vec![2.0; 4]));
    let c = on_device(&Remote, vec![7.0; 3]);
    let error = product(&Remote, [&a, &b, &c]).unwrap_err();
    assert!(matches!(error, Error::Length { operand: "c", .. }), "{error}");
    assert_eq!(c.data().unwrap().host().unwrap(), [7.0; 3]);
    let short = Blob::<f32, _>::new(&Remote, &[2]).unwrap();
    let copied = Remote.copy_into(&a, &short);
    assert!(matches!(copied, Err(Error::Length { .. })));
    assert_eq!(short.data().unwrap().host().unwrap(), [0.0; 2], "nobody wrote it");
}

impl Remote {
    fn copy_into(&self, x: &Blob<f32, Self>, y: &Blob<f32, Self>) -> Result<()> {
        use cortado::kernel::Blas;
        self.copy(x.data()?.view(), y.data_mut()?.view_mut())
    }
}
