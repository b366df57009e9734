//! Checks of the allocations and transfers of [`Memory`](crate::Memory).

use crate::{
    conformance::{
        compare::expect_bits, failure::Verdict, runner::CheckRunner, values::byte_pattern,
    },
    device::AnyDevice,
    memory::Memory,
};
use proptest::prelude::*;

/// Sizes of buffers in bytes: 0, less than a word, and near the page size.
const SIZES: [usize; 9] = [0, 1, 3, 7, 64, 1000, 4096, 4097, 65_537];

/// Size in bytes above 4 MiB, at which a device may copy in pieces; not a multiple of a word.
const LARGE: usize = (4 << 20) + 5;

/// Copy of `len` bytes to or from offset `at` of a buffer of `size` bytes.
#[derive(Clone, Copy, Debug)]
struct Case {
    size: usize,
    at: usize,
    len: usize,
}

impl Case {
    fn corner_cases() -> impl Iterator<Item = Self> {
        let ranges = [(0, 0), (0, 1), (1, 0), (1, 3), (3, 7), (5, 1), (9, 64), (1000, 2001)];
        let parts = ranges.map(|(at, len)| Self { size: 4099, at, len });
        let whole_buffers = SIZES.map(|size| Self { size, at: 0, len: size });
        let ends = SIZES.map(|size| Self { size, at: size, len: 0 });
        let large = [(LARGE, 0), (LARGE + 8, 3)].map(|(size, at)| Self { size, at, len: LARGE });
        parts.into_iter().chain(whole_buffers).chain(ends).chain(large)
    }

    fn any() -> BoxedStrategy<Self> {
        (0..5000usize, any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(size, at, len)| {
                let at = at.index(size + 1);
                Self { size, at, len: len.index(size - at + 1) }
            })
            .boxed()
    }
}

pub(super) fn raw_copies(runner: &CheckRunner<'_>) -> Verdict {
    let test = |case: &Case| uploads_and_downloads(runner.device, case);
    runner.try_cases(Case::corner_cases(), test)?;
    runner.try_random(Case::any(), test)?;
    runner.try_cases(SIZES, |&size| allocates_zeros(runner.device, size))
}

/// Uploads a range of a buffer, and downloads the whole buffer and the range.
fn uploads_and_downloads(device: &AnyDevice, &Case { size, at, len }: &Case) -> Verdict {
    let mut want = byte_pattern(1, size);
    let mut buffer = device.alloc(size)?;
    device.upload(&want, &mut buffer, 0)?;
    let part = byte_pattern(2, len);
    device.upload(&part, &mut buffer, at)?;
    want[at..at + len].copy_from_slice(&part);
    let mut got = vec![0; size];
    device.download(&buffer, 0, &mut got)?;
    expect_bits("byte of the buffer", &got, &want)?;
    let mut got = vec![0; len];
    device.download(&buffer, at, &mut got)?;
    expect_bits("byte of the part", &got, &part)
}

/// Fails unless new memory is zero on both sides, even after nonzero memory was freed.
fn allocates_zeros(device: &AnyDevice, size: usize) -> Verdict {
    for _ in 0..4 {
        let mut buffer = device.alloc(size)?;
        let mut got = vec![0xff; size];
        device.download(&buffer, 0, &mut got)?;
        expect_bits("byte of new memory", &got, &vec![0; size])?;
        device.upload(&vec![0xff; size], &mut buffer, 0)?;
        let mut host = device.alloc_host(size)?;
        expect_bits("byte of new host memory", &host, &vec![0; size])?;
        host.fill(0xff);
    }
    Ok(())
}
