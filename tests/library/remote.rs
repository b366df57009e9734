//! A device whose memory the host can access only by copies.

/// Implements [`Memory`](cortado::Memory) for a device whose buffers are `Vec<u8>`.
macro_rules! remote_memory {
    ($device:ty) => {
        impl cortado::Memory for $device {
            type Buffer = Vec<u8>;

            fn name(&self) -> String {
                "remote".into()
            }
            fn alloc(&self, bytes: usize) -> cortado::Result<Vec<u8>> {
                let mut buffer = Vec::new();
                buffer
                    .try_reserve_exact(bytes)
                    .map_err(|_| cortado::Error::OutOfMemory { device: self.name(), bytes })?;
                buffer.resize(bytes, 0);
                Ok(buffer)
            }
            fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> cortado::Result<()> {
                dst[at..at + src.len()].copy_from_slice(src);
                Ok(())
            }
            fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> cortado::Result<()> {
                dst.copy_from_slice(&src[at..at + dst.len()]);
                Ok(())
            }
        }
    };
}

/// A device without native kernels. Tests that override a kernel define their own type.
#[allow(dead_code)]
#[derive(Clone, Debug)]
pub(crate) struct Remote;

remote_memory!(Remote);
cortado::families!(Remote);
