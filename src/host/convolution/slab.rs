//! Which columns are made and multiplied at a time.

use crate::{
    element::Element,
    error::Result,
    host::{
        scratch::with_scratch,
        window::{fold, reach::Reaches, unroll},
        workers::Workers,
    },
    op::{Convolution, Window},
};
use num_traits::Float;
use std::ops::Range;

/// Elements of columns beyond which they are made band by band: from a second-level cache they
/// come a little faster, but all filters are read anew for each band.
const RESIDENT: usize = 1 << 18;

/// Columns below which a product is too narrow to be fast.
const NARROW: usize = 96;

/// Terms below which a sum over positions is too short to be fast: every sum is read and written
/// for so many.
const SHORT: usize = 384;

/// How a convolution's images are cut into slabs of columns.
pub(super) struct Slabs {
    /// Windows over the channels of one group.
    window: Window,
    batch: usize,
    groups: usize,
    /// Output planes of one group.
    outputs: usize,
    /// Most images side by side.
    images: usize,
    /// For every band of positions along the first axis: its positions, and what is seen there.
    bands: Vec<(Range<usize>, Reaches)>,
}

/// Images and positions of one group, whose columns are multiplied at once.
pub(super) struct Slab {
    images: Range<usize>,
    group: usize,
    band: usize,
    columns: usize,
}

impl Slab {
    pub(super) fn group(&self) -> usize {
        self.group
    }

    /// Columns in all.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }
}

impl Slabs {
    /// For products whose columns are positions.
    pub(super) fn of_results(op: &Convolution) -> Result<Self> {
        Self::new(op, NARROW)
    }

    /// For sums over positions.
    pub(super) fn of_filters(op: &Convolution) -> Result<Self> {
        Self::new(op, SHORT)
    }

    fn new(op: &Convolution, wanted: usize) -> Result<Self> {
        let all = op.window();
        let window = Window::new(all.channels() / op.groups(), all.axes())?;
        let (rows, positions) = (window.rows().max(1), window.positions().max(1));
        // As many images as make the product wide, so long as their columns stay in the cache.
        let images = wanted.div_ceil(positions).min((2 * RESIDENT / (rows * positions)).max(1));
        let first = window.output().first().copied().unwrap_or(1);
        let inner = positions / first.max(1);
        let band = if rows * positions <= 2 * RESIDENT || window.is_identity() {
            first
        } else {
            // Bands of one height, or nearly.
            let most = (RESIDENT / (rows * inner)).max(NARROW.div_ceil(inner)).min(first);
            first.div_ceil(first.div_ceil(most))
        };
        let bands = (0..first).step_by(band.max(1)).map(|start| {
            let end = first.min(start + band);
            (start * inner..end * inner, Reaches::band(&window, start..end))
        });
        let bands = bands.collect();
        let (batch, groups) = (op.batch(), op.groups());
        let images = images.clamp(1, batch.max(1));
        Ok(Self { window, batch, groups, outputs: op.outputs() / groups, images, bands })
    }

    /// Rows of the columns of one group.
    pub(super) fn rows(&self) -> usize {
        self.window.rows()
    }

    /// Output planes of one group.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Most images of one slab.
    pub(super) fn images(&self) -> usize {
        self.images
    }

    /// Runs of so many images in the batch.
    pub(super) fn tasks(&self) -> usize {
        self.batch.div_ceil(self.images)
    }

    /// Calls `body` for the slabs of `images` images, in order.
    pub(super) fn try_each(
        &self,
        images: usize,
        mut body: impl FnMut(&Slab) -> Result<()>,
    ) -> Result<()> {
        (0..self.groups).try_for_each(|group| self.try_each_of(group, images, &mut body))
    }

    /// Calls `body` for the slabs of one group of `images` images, in order.
    pub(super) fn try_each_of(
        &self,
        group: usize,
        images: usize,
        mut body: impl FnMut(&Slab) -> Result<()>,
    ) -> Result<()> {
        for start in (0..images).step_by(self.images) {
            let images = start..images.min(start + self.images);
            for (band, (positions, _)) in self.bands.iter().enumerate() {
                let columns = images.len() * positions.len();
                body(&Slab { images: images.clone(), group, band, columns })?;
            }
        }
        Ok(())
    }

    /// Whether products write each image whole, once: none has to be zero before.
    pub(super) fn overwrite(&self) -> bool {
        self.window.is_identity() && self.images == 1
    }

    /// Calls `body` with the slab's columns and their leading dimension: the images themselves
    /// where that is what they are.
    pub(super) fn with_columns<A: Element, R>(
        &self,
        workers: &Workers,
        slab: &Slab,
        x: &[A],
        body: impl FnOnce(&[A], usize) -> R,
    ) -> R {
        if self.window.is_identity() && slab.images.len() == 1 {
            return body(&x[self.image(slab, slab.images.start)], self.window.positions());
        }
        let ld = slab.columns;
        with_scratch(self.rows() * ld, |columns: &mut [A]| {
            let (positions, reaches) = &self.bands[slab.band];
            for (i, image) in slab.images.clone().enumerate() {
                let at = (i * positions.len()).min(columns.len());
                unroll(workers, reaches, &x[self.image(slab, image)], &mut columns[at..], ld);
            }
            body(columns, ld)
        })
    }

    /// Adds the slab's columns to the images they stem from.
    pub(super) fn fold<A: Element + Float>(
        &self,
        workers: &Workers,
        slab: &Slab,
        columns: &[A],
        x: &mut [A],
    ) {
        let (positions, reaches) = &self.bands[slab.band];
        for (i, image) in slab.images.clone().enumerate() {
            let columns = &columns[(i * positions.len()).min(columns.len())..];
            fold(workers, reaches, columns, slab.columns, &mut x[self.image(slab, image)]);
        }
    }

    /// The image itself and its leading dimension, if that is what its columns are.
    pub(super) fn identity_mut<'a, A>(
        &self,
        slab: &Slab,
        x: &'a mut [A],
    ) -> Option<(&'a mut [A], usize)> {
        (self.window.is_identity() && slab.images.len() == 1)
            .then(|| (&mut x[self.image(slab, slab.images.start)], self.window.positions()))
    }

    /// Leading dimension of the slab's results where a product can write them.
    pub(super) fn pitch(&self, slab: &Slab) -> usize {
        if slab.images.len() == 1 { self.window.positions() } else { slab.columns }
    }

    /// The slab's results, if a product can write them: those of one image.
    pub(super) fn result_mut<'a, A>(&self, slab: &Slab, y: &'a mut [A]) -> Option<&'a mut [A]> {
        let first = self.bands[slab.band].0.start;
        (slab.images.len() == 1).then(|| {
            let result = &mut y[self.result(slab, slab.images.start)];
            let first = first.min(result.len());
            &mut result[first..]
        })
    }

    /// Copies results of several images side by side to their places.
    pub(super) fn scatter_results<A: Element>(&self, slab: &Slab, product: &[A], y: &mut [A]) {
        let band = &self.bands[slab.band].0;
        for (row, product) in product.chunks_exact(slab.columns.max(1)).enumerate() {
            for (image, run) in slab.images.clone().zip(product.chunks_exact(band.len().max(1))) {
                let at = self.result(slab, image).start + row * self.window.positions();
                y[at + band.start..at + band.end].copy_from_slice(run);
            }
        }
    }

    /// Calls `body` with the slab's results side by side, and their leading dimension.
    pub(super) fn with_results<A: Element, R>(
        &self,
        slab: &Slab,
        y: &[A],
        body: impl FnOnce(&[A], usize) -> R,
    ) -> R {
        let band = &self.bands[slab.band].0;
        if slab.images.len() == 1 {
            let result = &y[self.result(slab, slab.images.start)];
            return body(&result[band.start.min(result.len())..], self.window.positions());
        }
        with_scratch(self.outputs * slab.columns, |side: &mut [A]| {
            for (row, side) in side.chunks_exact_mut(slab.columns.max(1)).enumerate() {
                let runs = side.chunks_exact_mut(band.len().max(1));
                for (image, run) in slab.images.clone().zip(runs) {
                    let at = self.result(slab, image).start + row * self.window.positions();
                    run.copy_from_slice(&y[at + band.start..at + band.end]);
                }
            }
            body(side, slab.columns)
        })
    }

    /// Where the slab's group of `image` lies.
    fn image(&self, slab: &Slab, image: usize) -> Range<usize> {
        let len = self.window.image();
        let start = (image * self.groups + slab.group) * len;
        start..start + len
    }

    /// Where the slab's group of the results of `image` lies.
    fn result(&self, slab: &Slab, image: usize) -> Range<usize> {
        let len = self.outputs * self.window.positions();
        let start = (image * self.groups + slab.group) * len;
        start..start + len
    }
}

/// Adds one bias to each row of `n` elements, rows `ld` apart.
pub(super) fn add_bias<A: Element + Float>(bias: Option<&[A]>, y: &mut [A], ld: usize, n: usize) {
    for (&bias, row) in bias.unwrap_or_default().iter().zip(y.chunks_mut(ld.max(1))) {
        row[..n].iter_mut().for_each(|y| *y = *y + bias);
    }
}
