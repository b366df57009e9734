//! The layer whose pass a thread runs, for diagnoses.

use super::{
    context::{is_watched, with_context},
    diagnosis::place::LayerPass,
};
use std::{marker::PhantomData, mem};

/// A guard that attributes the accesses of its thread to a pass of a layer until the guard is
/// dropped.
#[must_use = "dropping the guard ends the layer's scope"]
pub(crate) struct LayerScope {
    /// The enclosing pass; `None` if nothing in the process records passes.
    outer: Option<Option<LayerPass>>,
    thread: PhantomData<*const ()>,
}

/// Attributes the accesses of the calling thread to the pass `layer()` until the returned guard is
/// dropped.
#[inline]
pub(crate) fn enter_layer(layer: impl FnOnce() -> LayerPass) -> LayerScope {
    let outer = is_watched().then(|| {
        let layer = layer();
        with_context(|context| context.layer.replace(layer))
    });
    LayerScope { outer, thread: PhantomData }
}

impl Drop for LayerScope {
    fn drop(&mut self) {
        if let Some(outer) = &mut self.outer {
            let outer = mem::take(outer);
            with_context(|context| context.layer = outer);
        }
    }
}
