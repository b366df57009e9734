//! A backend outside the crate, with four memory methods and the default of every kernel, which
//! runs on the host. This device trains LeNet on digits with results bit-identical to the CPU's.

use cortado::{Error, Memory, Result};

// The backend starts here.

/// A device whose memory the host can access only by copies.
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

// The backend ends here.

#[cfg(feature = "net")]
mod training {
    use super::Remote;
    use crate::digits::train_digits;
    use cortado::CpuDevice;

    #[test]
    fn training_on_a_custom_backend_is_bit_identical_to_the_cpu() {
        let (losses, weights) = train_digits(&CpuDevice::new(), 20).unwrap();
        assert_eq!(losses.len(), 20);
        assert!(losses[19] < losses[0], "the loss did not decrease: {losses:?}");
        let (remote_losses, remote_weights) = train_digits(&Remote, 20).unwrap();
        assert_eq!(losses, remote_losses);
        assert!(weights == remote_weights, "weights differ");
    }

    #[test]
    fn training_is_bit_identical_for_any_number_of_threads() {
        let [sequential, two, three] = [1, 2, 3]
            .map(|threads| train_digits(&CpuDevice::with_threads(threads).unwrap(), 5).unwrap());
        for (threads, (losses, weights)) in [(2, two), (3, three)] {
            assert_eq!(sequential.0, losses, "{threads} threads");
            assert!(sequential.1 == weights, "weights differ on {threads} threads");
        }
    }
}
