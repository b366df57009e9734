//! The proposal layer of Faster R-CNN, which turns scores and offsets of anchors into regions.

use super::{prelude::*, python::PythonParam};
use crate::proto::Phase;

/// Proposals of regions. The bottoms are the scores of the anchors, `[1, 2·anchors, height,
/// width]`, with the scores of objects in the second half of the channels; the offsets of the
/// anchors, `[1, 4·anchors, height, width]`; and the height of the image in pixels, its width, and
/// the factor by which the image was scaled.
///
/// The layer moves and scales each anchor by its offsets, clips the anchor to the image, and
/// removes regions with a side shorter than `min_size` times the scale of the image. Of the
/// `pre_nms_topn` regions with the highest scores, in descending order, the layer keeps each region
/// that overlaps no kept region by more than `nms_thresh`, until it has kept `post_nms_topn`
/// regions. The overlap is the area of the intersection divided by the area of the union.
///
/// The top has a row for each region: the index of the image, which is 0, and the left, top, right
/// and bottom edges in pixels. The optional second top holds the scores. The number of rows depends
/// on the values of the bottoms, which the layer therefore reads on the host; before the first
/// forward pass, the top has one row of zeros. The layer has no gradient; it sets the gradients of
/// its bottoms to zero.
///
/// Anchors and defaults are those of Ren, He, Girshick and Sun, Faster R-CNN (2015). The layer
/// implements the Python layers `rpn.proposal_layer.ProposalLayer` of py-faster-rcnn and
/// `SSH.layers.proposal_layer.ProposalLayer` of the face detector SSH. Both take `feat_stride` and
/// `scales` from `param_str`, which can also contain the `ratios` of PVANet and SSH, and the
/// `base_size` of SSH. The layer also implements the type `Proposal` of other forks, which has the
/// field `proposal_param`.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "Input" top: "scores" input_param { shape { dim: 1 dim: 18 dim: 2 dim: 2 } } }
///     layer { type: "Input" top: "deltas" input_param { shape { dim: 1 dim: 36 dim: 2 dim: 2 } } }
///     layer { type: "Input" top: "info" input_param { shape { dim: 1 dim: 3 } } }
///     layer { type: "Python" bottom: "scores" bottom: "deltas" bottom: "info" top: "rois"
///       python_param { module: "rpn.proposal_layer" layer: "ProposalLayer"
///         param_str: "'feat_stride': 16" } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.blob("info").unwrap().copy_from_slice(&[40.0, 60.0, 1.0])?;
/// net.forward()?;
/// assert_eq!(net.blob("rois").unwrap().shape()[1], 5);
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct ProposalLayer {
    kind: &'static str,
    settings: Settings,
    /// The anchors at the first position of the feature map: left, top, right and bottom edges.
    anchors: Vec<[f32; 4]>,
    has_reshaped: bool,
    proposals: Vec<Proposal>,
}

struct Settings {
    stride: f32,
    min_size: f32,
    before_suppression: usize,
    after_suppression: usize,
    /// The largest overlap of two proposals; `None` allows any.
    overlap: Option<f32>,
}

#[derive(Clone, Copy, Default)]
struct Proposal {
    score: f32,
    edges: [f32; 4],
}

impl ProposalLayer {
    /// Creates a layer of the type `Proposal`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if a field of `proposal_param` is out of range.
    pub fn new(param: &LayerParameter, _: &LayerContext<'_>) -> Result<Self> {
        let param = param.proposal_param.clone().unwrap_or_default();
        let settings = Settings {
            stride: param.feat_stride() as f32,
            min_size: param.min_size() as f32,
            before_suppression: param.pre_nms_topn() as usize,
            after_suppression: param.post_nms_topn() as usize,
            overlap: Some(param.nms_thresh()),
        };
        let or_default = |values: &[f32], default: [f64; 3]| match values {
            [] => default.to_vec(),
            values => values.iter().map(|&value| value.into()).collect(),
        };
        let ratios = or_default(&param.ratio, RATIOS);
        let scales = or_default(&param.scale, SCALES);
        let base = f64::from(param.base_size());
        Self::with("Proposal", settings, base, &ratios, &scales)
            .map_err(|error| error.context("proposal_param"))
    }

    /// Creates a layer that replaces the Python layer of py-faster-rcnn.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if `feat_stride` is missing in `param_str`, or if a number is
    /// out of range.
    pub fn of_python(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let [before_suppression, after_suppression] = match cx.phase {
            Phase::Train => [12_000, 2_000],
            Phase::Test => [6_000, 300],
        };
        let limits = Settings {
            stride: 0.0,
            min_size: 16.0,
            before_suppression,
            after_suppression,
            overlap: Some(0.7),
        };
        Self::from_param_str(&PythonParam::of(param), limits)
    }

    /// Creates a layer that replaces the Python layer of the face detector SSH. In the TEST phase,
    /// the layer keeps the 1000 regions with the highest scores, even if they overlap.
    ///
    /// # Errors
    /// As [`of_python`](Self::of_python).
    pub fn of_ssh(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let (min_size, after_suppression, overlap) = match cx.phase {
            Phase::Train => (4.0, 300, Some(0.3)),
            Phase::Test => (0.0, 0, None),
        };
        let before_suppression = 1_000;
        let limits =
            Settings { stride: 0.0, min_size, before_suppression, after_suppression, overlap };
        Self::from_param_str(&PythonParam::of(param), limits)
    }

    /// Creates a layer with the given limits. Reads the stride and the parameters of the anchors
    /// from `param_str`.
    fn from_param_str(param: &PythonParam, limits: Settings) -> Result<Self> {
        let Some(stride) = param.number("feat_stride")? else {
            return invalid("python_param: param_str: feat_stride is required");
        };
        let ratios = param.numbers("ratios")?.unwrap_or(RATIOS.to_vec());
        let scales = param.numbers("scales")?.unwrap_or(SCALES.to_vec());
        let base = param.number("base_size")?.unwrap_or(16.0);
        let settings = Settings { stride: stride as f32, ..limits };
        Self::with("Python", settings, base, &ratios, &scales)
            .map_err(|error| error.context("python_param: param_str"))
    }

    fn with(
        kind: &'static str,
        settings: Settings,
        base: f64,
        ratios: &[f64],
        scales: &[f64],
    ) -> Result<Self> {
        let numbers = [f64::from(settings.stride), base];
        let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
        let mut numbers = numbers.iter().chain(ratios).chain(scales);
        if !numbers.all(is_positive) || ratios.is_empty() || scales.is_empty() {
            return invalid("the stride, base size, ratios and scales must be positive and finite");
        }
        let anchors = anchors(base, ratios, scales);
        Ok(Self { kind, settings, anchors, has_reshaped: false, proposals: Vec::new() })
    }

    /// Computes the proposals from the values of the bottoms.
    fn propose<T: Element>(&self, bottom: &[Blob<T>]) -> Result<Vec<Proposal>> {
        let [_, _, height, width] = image_extents(bottom[0].shape())?;
        let (scores, offsets, info) = (bottom[0].data()?, bottom[1].data()?, bottom[2].data()?);
        let (scores, offsets) = (scores.host()?, offsets.host()?);
        let info: Vec<f32> = info.host()?.iter().map(|value| value.to_f64() as f32).collect();
        let (image, min_size) = ([info[1], info[0]], self.settings.min_size * info[2]);
        let (plane, anchors) = (height * width, self.anchors.len());
        let mut proposals = Vec::new();
        for position in 0..plane {
            let shift =
                [position % width, position / width].map(|i| i as f32 * self.settings.stride);
            for (i, anchor) in self.anchors.iter().enumerate() {
                let offset = |k: usize| offsets[(4 * i + k) * plane + position].to_f64() as f32;
                let edges = moved(anchor, shift, [0, 1, 2, 3].map(offset), image);
                let sides = [edges[2] - edges[0] + 1.0, edges[3] - edges[1] + 1.0];
                if sides.iter().all(|&side| side >= min_size) {
                    let score = scores[(anchors + i) * plane + position].to_f64() as f32;
                    proposals.push(Proposal { score, edges });
                }
            }
        }
        proposals.sort_by(|a, b| b.score.total_cmp(&a.score));
        let Settings { before_suppression, after_suppression, overlap, .. } = self.settings;
        if before_suppression > 0 {
            proposals.truncate(before_suppression);
        }
        Ok(match overlap {
            Some(threshold) => non_max_suppression(&proposals, threshold, after_suppression),
            None => proposals,
        })
    }
}

const RATIOS: [f64; 3] = [0.5, 1.0, 2.0];
const SCALES: [f64; 3] = [8.0, 16.0, 32.0];

/// Returns the anchors at the first position: for each ratio, one anchor per scale.
fn anchors(base: f64, ratios: &[f64], scales: &[f64]) -> Vec<[f32; 4]> {
    let center = (base - 1.0) / 2.0;
    let mut anchors = Vec::new();
    for ratio in ratios {
        let width = (base * base / ratio).sqrt().round_ties_even();
        let height = (width * ratio).round_ties_even();
        for scale in scales {
            let half = [width, height].map(|side| (side * scale - 1.0) / 2.0);
            let edges = [center - half[0], center - half[1], center + half[0], center + half[1]];
            anchors.push(edges.map(|edge| edge as f32));
        }
    }
    anchors
}

/// Returns the edges of `anchor` after the anchor is shifted by `shift`, moved and scaled by
/// `offsets`, and clipped to an image of width `image[0]` and height `image[1]`.
fn moved(anchor: &[f32; 4], shift: [f32; 2], offsets: [f32; 4], image: [f32; 2]) -> [f32; 4] {
    let mut edges = [0.0; 4];
    for axis in [0, 1] {
        let (start, end) = (anchor[axis] + shift[axis], anchor[axis + 2] + shift[axis]);
        let side = end - start + 1.0;
        let center = start + 0.5 * side + offsets[axis] * side;
        let half = 0.5 * offsets[axis + 2].exp() * side;
        let clip = |edge: f32| edge.min(image[axis] - 1.0).max(0.0);
        (edges[axis], edges[axis + 2]) = (clip(center - half), clip(center + half));
    }
    edges
}

/// Returns the first `limit` proposals that overlap no better returned proposal by more than
/// `threshold`; with a limit of 0, returns all of them.
fn non_max_suppression(proposals: &[Proposal], threshold: f32, limit: usize) -> Vec<Proposal> {
    let mut kept: Vec<Proposal> = Vec::new();
    for proposal in proposals {
        if limit > 0 && kept.len() == limit {
            break;
        }
        if kept.iter().all(|better| overlap(&better.edges, &proposal.edges) <= threshold) {
            kept.push(*proposal);
        }
    }
    kept
}

/// Returns the area of the intersection of two regions, divided by the area of their union.
fn overlap(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let area = |edges: [f32; 4]| {
        let sides = [edges[2] - edges[0] + 1.0, edges[3] - edges[1] + 1.0];
        sides[0].max(0.0) * sides[1].max(0.0)
    };
    let intersection = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    intersection / (area(*a) + area(*b) - intersection)
}

impl<T: Element> Layer<T> for ProposalLayer {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn arity(&self) -> Arity {
        Arity::between(3..=3, 1..=2)
    }

    fn reshape(&mut self, bottom: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        let (scores, offsets) = (bottom[0].shape(), bottom[1].shape());
        let [images, channels, height, width] = image_extents(scores)?;
        let anchors = self.anchors.len();
        if images != 1 || channels != 2 * anchors || offsets[..] != [1, 4 * anchors, height, width]
        {
            return wrong_shape(format!(
                "expected scores of shape [1, {}, height, width] and offsets of shape [1, {}, height, \
                 width] for {anchors} anchors, found {scores} and {offsets}",
                2 * anchors,
                4 * anchors
            ));
        }
        if bottom[2].count() < 3 {
            return wrong_shape(format!(
                "image information: expected height, width and scale, found shape {}",
                bottom[2].shape()
            ));
        }
        self.proposals = match std::mem::replace(&mut self.has_reshaped, true) {
            true => self.propose(bottom)?,
            false => vec![Proposal::default()],
        };
        let count = self.proposals.len();
        let mut widths = [5, 1].into_iter();
        top.iter_mut().try_for_each(|top| top.reshape(&[count, widths.next().unwrap_or(1)]))
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let value = |value: f32| T::from_f64(value.into());
        let regions = self.proposals.iter().flat_map(|proposal| {
            let [left, top, right, bottom] = proposal.edges;
            [0.0, left, top, right, bottom].map(value)
        });
        top[0].copy_from_slice(&regions.collect::<Vec<_>>())?;
        match top.get(1) {
            Some(top) => {
                let scores = self.proposals.iter().map(|proposal| value(proposal.score));
                top.copy_from_slice(&scores.collect::<Vec<_>>())
            }
            None => Ok(()),
        }
    }

    fn backward(
        &mut self,
        device: &AnyDevice,
        _: &[Blob<T>],
        propagate: PropagateDown<'_>,
        bottom: &[Blob<T>],
    ) -> Result<()> {
        zero_gradients(device, propagate, bottom)
    }
}
