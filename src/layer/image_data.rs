//! Batches out of image files.

use super::{
    DataLayer, LayerContext,
    data::{BatchParams, PREFETCH},
};
use crate::{
    data::{Color, ImageList, Source},
    device::Device,
    element::Element,
    error::{Error, Result},
    proto::LayerParameter,
};

impl<T: Element, D: Device> DataLayer<T, D> {
    /// The type `ImageData`: the [`ImageList`] that `image_data_param` lists.
    ///
    /// All have to be of one size after `new_height`, `new_width` and `crop_size`.
    ///
    /// # Errors
    /// Those of the list, of the first image and of `transform_param`; [`Error::InvalidData`] unless
    /// both or none of `new_height` and `new_width` are given.
    #[doc(alias = "ImageDataLayer")]
    pub fn of_images(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let images = param.image_data_param.clone().unwrap_or_default();
        let mut source = ImageList::open(images.source(), images.root_folder())?;
        match (images.new_height(), images.new_width()) {
            (0, 0) => {}
            (0, _) | (_, 0) => {
                let why = "image_data_param needs both of new_height and new_width, or none";
                return Err(Error::InvalidData(why.into()));
            }
            (height, width) => source = source.resized(height as usize, width as usize),
        }
        if images.shuffle() {
            source = source.shuffled(cx.key.named_child("shuffle"));
        }
        source.set_color(if images.is_color() { Color::Bgr } else { Color::Gray });
        let transform = param.transform_param.clone().unwrap_or_default();
        let (batch_size, rand_skip) = (images.batch_size(), images.rand_skip());
        let taken = BatchParams { batch_size, prefetch: PREFETCH, rand_skip };
        Self::of("ImageData", Box::new(source), &transform, taken, cx)
    }
}
