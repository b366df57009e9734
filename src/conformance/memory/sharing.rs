//! Checks of memory that two blobs share, and of memory that several threads read concurrently.

use crate::{
    blob::Blob,
    conformance::{
        compare::expect_bits,
        failure::{Verdict, flaw},
        runner::CheckRunner,
        values::byte_pattern,
    },
    device::AnyDevice,
    kernel::traits::*,
    memory::SyncedMemory,
};
use std::thread;

pub(super) fn sharing(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_cases([0, 1, 5, 4099], |&len| {
        runner.start_step(format!("reads of {len} elements that two blobs share"));
        shared_by_blobs(runner.device, len)
    })?;
    runner.try_cases([1, 4099, 1 << 18], |&size| {
        runner.start_step(format!("reads of {size} bytes by four threads"));
        read_by_threads(runner.device, size)
    })
}

/// Writes through one of two blobs that share data, on the host and on the device, and reads
/// through the other blob.
fn shared_by_blobs(device: &AnyDevice, len: usize) -> Verdict {
    let first_blob = Blob::<f32>::from_vec(device, &[len], vec![1.0; len])?;
    let mut second_blob = Blob::<f32>::new(device, &[len])?;
    second_blob.share_data(&first_blob)?;
    device.scal(3.0, second_blob.data_mut()?.view_mut())?;
    expect_bits("element scaled on the device", first_blob.data()?.host()?, &vec![3.0; len])?;
    first_blob.data_mut()?.host_mut()?.fill(5.0);
    device.scal(2.0, second_blob.data_mut()?.view_mut())?;
    device.axpy(1.0, first_blob.diff()?.view(), first_blob.data_mut()?.view_mut())?;
    expect_bits("element written on the host", second_blob.data()?.host()?, &vec![10.0; len])?;
    match first_blob.data_head()? == second_blob.data_head()? {
        true => Ok(()),
        false => Err(flaw!("blobs that share data report different valid sides")),
    }
}

/// Reads both sides of a memory from four threads concurrently.
fn read_by_threads(device: &AnyDevice, size: usize) -> Verdict {
    let want = &byte_pattern(7, size);
    for on_device in [true, false] {
        let mut memory = SyncedMemory::new(device, size);
        memory.host_write_only()?.copy_from_slice(want);
        if on_device {
            memory.device_mut()?;
        }
        let read = |from_device: bool| -> Verdict {
            if !from_device {
                return expect_bits("byte on the host", memory.host()?, want);
            }
            let mut got = vec![0; size];
            device.download(memory.device()?, 0, &mut got)?;
            expect_bits("byte on the device", &got, want)
        };
        thread::scope(|scope| {
            let readers = [true, false, true, false].map(|side| scope.spawn(move || read(side)));
            let results = readers.map(|reader| reader.join());
            results.into_iter().try_for_each(|read| {
                read.unwrap_or_else(|_| Err(flaw!("a thread that reads memory panicked")))
            })
        })?;
    }
    Ok(())
}
