//! Tests of a backend that is defined outside the library. The backend has four memory methods and
//! no native kernels. Training LeNet on the custom backend must be bit-identical to training on the
//! CPU.

use cortado::{
    AnyDevice, Blob, CpuDevice, Error, Memory, Result, SimulatedDevice,
    bench_kit::{BreakEven, SizeRange, Survey},
    kernel::Elementwise,
};

/// Device whose memory the host can access only by copies.
#[derive(Clone, Debug)]
pub(crate) struct Remote;

impl Memory for Remote {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "remote".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        let range = dst.get_mut(at..at + src.len());
        range.ok_or_else(|| Error::device("remote", "out of range"))?.copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        let range = src.get(at..at + dst.len());
        dst.copy_from_slice(range.ok_or_else(|| Error::device("remote", "out of range"))?);
        Ok(())
    }
}

cortado::families!(Remote);

#[test]
fn a_kernel_of_another_device_type_fails_and_changes_no_operand() {
    let values = vec![1.0f32, 2.0, 3.0];
    let y: Blob<f32> = Blob::from_vec(&AnyDevice::new(&Remote), &[3], values.clone()).unwrap();
    let other_device = AnyDevice::new(&SimulatedDevice::new());
    for _ in 0..2 {
        let error =
            other_device.fill(7.0, y.data_mut().unwrap().view_mut()).unwrap_err().to_string();
        assert!(error.contains("remote") && error.contains("another type of device"), "{error}");
        assert_eq!(y.data().unwrap().host().unwrap(), values);
        // Before the first call of `fill`, only the host side is valid. Before the second call of
        // `fill`, both sides are valid.
        y.data().unwrap().view().device().unwrap();
    }
}

#[test]
fn a_survey_of_a_device_without_kernels_shows_fallbacks_and_claims_no_gain() {
    let host = Survey::measure::<f32>(&CpuDevice::new(), SizeRange::Smoke).unwrap();
    assert!(host.timings.iter().all(|timing| !timing.fallback), "{host}");
    let survey = Survey::measure::<f32>(&Remote, SizeRange::Smoke).unwrap();
    assert!(survey.timings.iter().all(|timing| timing.fallback), "{survey}");
    assert_eq!((survey.peaks.bandwidth, survey.peaks.flops_per_second), (0.0, 0.0));
    let table = BreakEven::between(&survey, &host);
    assert_eq!((table.resident("gemm"), table.with_transfers("gemm")), (None, None));
    let text = table.to_string();
    assert!(text.contains("gemm ") && !text.contains("x\n") && !text.contains("never"), "{text}");
}

#[cfg(feature = "net")]
mod training {
    use super::Remote;
    use crate::digits::{ON_ONE_THREAD, train_digits};
    use cortado::CpuDevice;

    #[test]
    fn training_on_a_custom_backend_is_bit_identical_to_the_cpu() {
        assert!(train_digits(&Remote).unwrap() == *ON_ONE_THREAD);
    }

    #[test]
    fn training_is_bit_identical_for_any_number_of_threads() {
        for threads in [2, 3] {
            let device = CpuDevice::with_threads(threads).unwrap();
            assert!(train_digits(&device).unwrap() == *ON_ONE_THREAD, "{threads} threads");
        }
    }
}
