//! Batches out of windows of images.

use super::{
    DataLayer, LayerContext,
    data::{BatchParams, PREFETCH},
};
use crate::{
    data::WindowCrops,
    device::Device,
    element::Element,
    error::Result,
    proto::{LayerParameter, TransformationParameter},
};

impl<T: Element, D: Device> DataLayer<T, D> {
    /// The type `WindowData`: the [`Windows`] that `window_data_param` lists.
    ///
    /// # Errors
    /// Those of [`Windows::open`] and of the first window.
    #[doc(alias = "WindowDataLayer")]
    pub fn of_windows(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let windows = param.window_data_param.clone().unwrap_or_default();
        let transform = param.transform_param.clone().unwrap_or_default();
        let source = WindowCrops::open(&windows, &transform, cx.key.named_child("windows"))?;
        let batch_size = windows.batch_size();
        let taken = BatchParams { batch_size, prefetch: PREFETCH, rand_skip: 0 };
        // All is done to a window when it is cut out.
        let nothing = TransformationParameter::default();
        Self::of("WindowData", Box::new(source), &nothing, taken, cx)
    }
}
