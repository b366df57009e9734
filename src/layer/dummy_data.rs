//! The DummyData layer, whose tops hold generated data.

use super::{position, prelude::*, proto_shape};
use crate::{
    filler::Filler,
    op::RngKey,
    proto::{DummyDataParameter, LayerState},
    shape::Shape,
};

/// A layer without bottoms, whose tops are filled by fillers. The definition gives one shape for
/// all tops or one shape per top, and one filler for all tops or one filler per top.
///
/// The layer fills a top with a constant filler only once, so that values which the caller writes
/// later persist. The layer refills a top with a random filler in every forward pass.
///
/// ```
/// use cortado::{prelude::*, proto::parse_text};
///
/// let text = r#"
///     layer { type: "DummyData" top: "a" top: "b" dummy_data_param { shape { dim: 3 }
///       data_filler { value: 7 } data_filler { type: "uniform" min: 1 max: 2 } } }"#;
/// let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&parse_text(text, "net")?)?;
/// net.forward()?;
/// assert_eq!(net.blob("a").unwrap().to_vec()?, [7.0; 3]);
/// assert!(net.blob("b").unwrap().to_vec()?.iter().all(|x| (1.0..2.0).contains(x)));
/// # Ok::<(), cortado::Error>(())
/// ```
pub struct DummyDataLayer {
    shapes: Vec<Shape>,
    fillers: Vec<Filler>,
    key: RngKey,
    has_filled_tops: bool,
    passes: u64,
}

impl DummyDataLayer {
    /// Creates the layer.
    ///
    /// # Errors
    /// Returns [`Error::InvalidData`] if the number of shapes or fillers does not match the number
    /// of tops. Returns [`Error::InvalidData`] if the definition gives both `shape` and one of the
    /// legacy fields `num`, `channels`, `height` and `width`. Returns an error if a filler's
    /// definition is invalid.
    pub fn new(param: &LayerParameter, cx: &LayerContext<'_>) -> Result<Self> {
        let (dummy, tops) = (param.dummy_data_param.clone().unwrap_or_default(), param.top.len());
        let fillers = dummy.data_filler.iter().map(Filler::from_proto).collect::<Result<Vec<_>>>();
        let fillers = match fillers? {
            none if none.is_empty() => vec![Filler::default()],
            some => some,
        };
        let fillers = one_per_top("data_filler", &fillers, tops)?;
        let shapes = shapes(&dummy, tops)?;
        Ok(Self { shapes, fillers, key: cx.pass_key(), has_filled_tops: false, passes: 0 })
    }
}

fn shapes(param: &DummyDataParameter, tops: usize) -> Result<Vec<Shape>> {
    let legacy_fields = [
        ("num", &param.num),
        ("channels", &param.channels),
        ("height", &param.height),
        ("width", &param.width),
    ];
    if legacy_fields.iter().all(|(_, values)| values.is_empty()) {
        let shapes = param.shape.iter().map(proto_shape::shape).collect::<Result<Vec<_>>>()?;
        return one_per_top("shape", &shapes, tops);
    }
    if !param.shape.is_empty() {
        let reason = "give either shape or num, channels, height and width";
        return invalid(format!("dummy_data_param: {reason}"));
    }
    let extents = legacy_fields.iter().map(|(name, values)| one_per_top(name, values, tops));
    let extents = extents.collect::<Result<Vec<_>>>()?;
    let shape = |top: usize| {
        Shape::new(&extents.iter().map(|values| values[top] as usize).collect::<Vec<_>>())
    };
    (0..tops).map(shape).collect()
}

/// Returns a list with one value per top. If `values` has a single element, that element applies to
/// all tops.
fn one_per_top<V: Clone>(name: &str, values: &[V], tops: usize) -> Result<Vec<V>> {
    match values {
        [one] => Ok(vec![one.clone(); tops]),
        values if values.len() == tops => Ok(values.to_vec()),
        values => {
            let reason = format!("{name}: expected 1 or {tops} values, found {}", values.len());
            invalid(format!("dummy_data_param: {reason}"))
        }
    }
}

impl<T: Element> Layer<T> for DummyDataLayer {
    fn kind(&self) -> &'static str {
        "DummyData"
    }

    fn arity(&self) -> Arity {
        Arity::exactly(0, self.shapes.len().max(1))
    }

    fn reshape(&mut self, _: &[Blob<T>], top: &mut [Blob<T>]) -> Result<()> {
        if !self.has_filled_tops {
            let params = self.shapes.iter().zip(&self.fillers);
            for (i, (top, (shape, filler))) in top.iter_mut().zip(params).enumerate() {
                top.reshape(shape)?;
                let name = || Some(format!("data of top {i} of shape {shape}"));
                let fill_result = filler.fill(top, self.key);
                fill_result.map_err(|error| error.name_allocation(name))?;
            }
            self.has_filled_tops = true;
        }
        Ok(())
    }

    fn forward(&mut self, _: &AnyDevice, _: &[Blob<T>], top: &[Blob<T>]) -> Result<()> {
        let key = self.key.child(self.passes);
        for ((top, filler), i) in top.iter().zip(&self.fillers).zip(0..) {
            if !matches!(filler, Filler::Constant { .. }) {
                filler.fill(top, key.child(i))?;
            }
        }
        self.passes += 1;
        Ok(())
    }

    fn state(&self) -> Result<Option<LayerState>> {
        position::state(self.passes)
    }

    fn set_state(&mut self, state: &LayerState) -> Result<()> {
        self.passes = position::of(state)?;
        Ok(())
    }

    fn skip_passes(&mut self, passes: u64) -> Result<bool> {
        self.passes = self.passes.saturating_add(passes);
        Ok(true)
    }
}
