//! First stage of the tutorial: a device that implements only the four required methods of `Memory`
//! and runs every kernel on the host.

// The source code in the README starts here.

use cortado::{Error, Memory, Result};
use pollster::block_on;

/// A device on an adapter that wgpu selects.
#[derive(Clone, Debug)]
pub struct FourMethods {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl FourMethods {
    pub fn new() -> Result<Self> {
        let wgpu_error = |error: &dyn std::fmt::Display| Error::device("wgpu", error.to_string());
        let adapter = block_on(wgpu::Instance::default().request_adapter(&Default::default()));
        let adapter = adapter.map_err(|error| wgpu_error(&error))?;
        let descriptor =
            wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
        let result = block_on(adapter.request_device(&descriptor));
        let (device, queue) = result.map_err(|error| wgpu_error(&error))?;
        Ok(Self { device, queue })
    }

    /// Creates a zeroed buffer of at least `bytes` bytes, rounded up to whole words.
    fn buffer(&self, bytes: usize, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let out_of_memory = || Error::OutOfMemory { device: self.name(), bytes };
        let size = (bytes as u64).max(4).next_multiple_of(4);
        if size > self.device.limits().max_buffer_size {
            return Err(out_of_memory());
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: usage | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        block_on(scope.pop()).map_or(Ok(buffer), |_| Err(out_of_memory()))
    }
}

impl Memory for FourMethods {
    type Buffer = wgpu::Buffer;

    fn name(&self) -> String {
        "wgpu".into()
    }
    fn alloc(&self, bytes: usize) -> Result<wgpu::Buffer> {
        self.buffer(bytes, wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::STORAGE)
    }
    fn upload(&self, src: &[u8], dst: &mut wgpu::Buffer, at: usize) -> Result<()> {
        // wgpu copies whole words, so the other bytes of the first and last word are read first.
        let (start, end) = (at / 4 * 4, (at + src.len()).next_multiple_of(4));
        let mut words = vec![0; end - start];
        if words.len() != src.len() {
            self.download(dst, start, &mut words)?;
        }
        words[at - start..][..src.len()].copy_from_slice(src);
        self.queue.write_buffer(dst, start as u64, &words);
        self.queue.submit([]);
        Ok(())
    }
    fn download(&self, src: &wgpu::Buffer, at: usize, dst: &mut [u8]) -> Result<()> {
        if dst.is_empty() {
            return Ok(());
        }
        let wgpu_error = |error: String| Error::device(self.name(), error);
        let (start, end) = (at / 4 * 4, (at + dst.len()).next_multiple_of(4));
        let staging = self.buffer(end - start, wgpu::BufferUsages::MAP_READ)?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(src, start as u64, &staging, 0, (end - start) as u64);
        self.queue.submit([encoder.finish()]);
        staging.map_async(wgpu::MapMode::Read, .., |_| ());
        let result = self.device.poll(wgpu::PollType::wait_indefinitely());
        result.map_err(|error| wgpu_error(error.to_string()))?;
        let bytes = staging.get_mapped_range(..).map_err(|error| wgpu_error(error.to_string()))?;
        dst.copy_from_slice(&bytes[at - start..][..dst.len()]);
        Ok(())
    }
}

cortado::families!(FourMethods);

// The source code in the README ends here.

fn main() -> Result<()> {
    let device = FourMethods::new()?;
    let x = cortado::Blob::from_vec(&device, &[3], vec![1.0f32, 2.0, 3.0])?;
    println!("{:?}", cortado::Blob::sumsq_data(&x)?);
    Ok(())
}
