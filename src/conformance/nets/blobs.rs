//! Reads and writes the elements of blobs as `f64`, and finds blobs and parameters of nets.

use crate::{
    blob::Blob,
    conformance::{
        failure::{Verdict, flaw},
        values::wide,
    },
    element::Element,
    error::Result,
    net::{Net, Param},
};

/// Overwrites the data of a blob with `values`.
pub(super) fn set_data<T: Element>(blob: &Blob<T>, values: &[f64]) -> Result<()> {
    let mut data = blob.data_mut()?;
    data.host_write_only()?.iter_mut().zip(values).for_each(|(x, &v)| *x = T::from_f64(v));
    Ok(())
}

/// Returns the data of a blob in `f64`.
pub(super) fn data<T: Element>(blob: &Blob<T>) -> Result<Vec<f64>> {
    Ok(wide(blob.data()?.host()?))
}

/// Returns the diff of a blob in `f64`.
pub(super) fn diff<T: Element>(blob: &Blob<T>) -> Result<Vec<f64>> {
    Ok(wide(blob.diff()?.host()?))
}

/// Returns the blob called `name` of a net.
pub(super) fn named<'a, T: Element>(net: &'a Net<T>, name: &str) -> Verdict<&'a Blob<T>> {
    net.blob(name).ok_or_else(|| flaw!("the net has no blob `{name}`"))
}

/// Returns names of all learnable parameters of a net for failure messages, such as ``parameter 0 of
/// layer `conv1` ``.
pub(super) fn param_names<T: Element>(net: &Net<T>) -> Vec<String> {
    let layers: Vec<_> = net.layer_names().collect();
    let name = |param: &Param<T>| {
        let layer = layers.get(param.layer).copied().unwrap_or_default();
        format!("parameter {} of layer `{layer}`", param.index)
    };
    net.learnable_params().map(name).collect()
}
