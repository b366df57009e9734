//! Formatting of blobs with `Debug`.

use super::Blob;
use crate::{
    device::Device,
    element::{Storable, bf16, f16},
    memory::Head,
};
use std::{
    any::{TypeId, type_name},
    fmt,
    mem::size_of,
};

/// Prints the shape, the device and the first elements of a blob. `Debug` transfers nothing, so the
/// output contains elements only while the host side is valid.
impl<T: Storable, D: Device> fmt::Debug for Blob<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} on {}: ", self.shape, self.device.name())?;
        let Ok(data) = self.data() else { return f.write_str("locked for writing)") };
        match data.head() {
            Head::Uninitialized => f.write_str("zeros)"),
            Head::HeadAtDevice => f.write_str("values on the device)"),
            Head::HeadAtHost | Head::Synced => {
                let values = data.host().map_err(|_| fmt::Error)?;
                f.write_str(&format_values(values))?;
                f.write_str(")")
            }
        }
    }
}

/// Formats the first elements of a blob.
fn format_values<T: Storable>(values: &[T]) -> String {
    const MAX_VALUES: usize = 8;
    let bytes = crate::cast::cast_slice::<T, u8>(&values[..values.len().min(MAX_VALUES)]);
    let element_type = TypeId::of::<T>();
    let texts: Vec<String> = if element_type == TypeId::of::<f32>() {
        format_as::<f32>(bytes)
    } else if element_type == TypeId::of::<f64>() {
        format_as::<f64>(bytes)
    } else if element_type == TypeId::of::<f16>() {
        format_as::<f16>(bytes)
    } else if element_type == TypeId::of::<bf16>() {
        format_as::<bf16>(bytes)
    } else if element_type == TypeId::of::<u32>() {
        format_as::<u32>(bytes)
    } else if element_type == TypeId::of::<i32>() {
        format_as::<i32>(bytes)
    } else {
        return format!("{} elements of {}", values.len(), type_name::<T>());
    };
    let ellipsis = if values.len() > MAX_VALUES { ", …" } else { "" };
    format!("[{}{ellipsis}]", texts.join(", "))
}

fn format_as<T: Storable + fmt::Display>(bytes: &[u8]) -> Vec<String> {
    let size = size_of::<T>();
    bytes.chunks_exact(size).filter_map(T::read_bytes).map(|x| x.to_string()).collect()
}
