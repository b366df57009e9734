//! Made-up data.

use super::{Arity, Layer, LayerContext, PropagateDown, proto_shape};
use crate::{
    blob::Blob,
    device::Device,
    element::Element,
    error::{Error, Result},
    filler::Filler,
    op::RngKey,
    proto::{DummyDataParameter, LayerParameter},
    shape::Shape,
};

/// Tops filled by fillers: one shape and one filler for all, or one for each.
///
/// Constants are written once, so that what the caller puts in their place stays; random tops
/// are drawn anew in every pass.
pub struct DummyDataLayer {
    shapes: Vec<Shape>,
    fillers: Vec<Filler>,
    key: RngKey,
    shaped: bool,
    /// Passes made.
    passes: u64,
}

impl DummyDataLayer {
    /// From the layer's parameters.
    ///
    /// # Errors
    /// [`Error::InvalidData`] unless there is one shape, or one for each top, and none, one, or one
    /// filler for each; if shapes are given both by `shape` and by the older fields. Those of the
    /// fillers.
    pub fn new<D: Device>(param: &LayerParameter, cx: &LayerContext<'_, D>) -> Result<Self> {
        let (dummy, tops) = (param.dummy_data_param.clone().unwrap_or_default(), param.top.len());
        let fillers = dummy.data_filler.iter().map(Filler::from_proto).collect::<Result<Vec<_>>>();
        let fillers = match fillers? {
            none if none.is_empty() => vec![Filler::default()],
            some => some,
        };
        let fillers = for_each("data_filler", &fillers, tops)?;
        let shapes = shapes(&dummy, tops)?;
        Ok(Self { shapes, fillers, key: cx.key, shaped: false, passes: 0 })
    }
}

/// The shape of each top.
fn shapes(param: &DummyDataParameter, tops: usize) -> Result<Vec<Shape>> {
    let older = [
        ("num", &param.num),
        ("channels", &param.channels),
        ("height", &param.height),
        ("width", &param.width),
    ];
    if older.iter().all(|(_, values)| values.is_empty()) {
        let shapes = param.shape.iter().map(proto_shape::shape).collect::<Result<Vec<_>>>()?;
        return for_each("shape", &shapes, tops);
    }
    if !param.shape.is_empty() {
        let why = "give either shapes or num, channels, height and width, which are older";
        return Err(Error::InvalidData(format!("dummy_data_param: {why}")));
    }
    let extents = older.iter().map(|(name, values)| for_each(name, values, tops));
    let extents = extents.collect::<Result<Vec<_>>>()?;
    let shape = |top: usize| {
        Shape::new(&extents.iter().map(|values| values[top] as usize).collect::<Vec<_>>())
    };
    (0..tops).map(shape).collect()
}

/// One value for each top, out of one for all or one for each.
fn for_each<V: Clone>(name: &str, values: &[V], tops: usize) -> Result<Vec<V>> {
    match values {
        [one] => Ok(vec![one.clone(); tops]),
        each if each.len() == tops => Ok(each.to_vec()),
        other => {
            let why = format!("gives {} of {name} for {tops} tops", other.len());
            Err(Error::InvalidData(format!("dummy_data_param {why}")))
        }
    }
}

impl<T: Element, D: Device> Layer<T, D> for DummyDataLayer {
    fn kind(&self) -> &'static str {
        "DummyData"
    }

    fn arity(&self) -> Arity {
        Arity::between(0..=0, 1..=usize::MAX)
    }

    fn reshape(&mut self, _: &[Blob<T, D>], top: &mut [Blob<T, D>]) -> Result<()> {
        if !self.shaped {
            for ((top, shape), filler) in top.iter_mut().zip(&self.shapes).zip(&self.fillers) {
                top.reshape(shape)?;
                filler.fill(top, self.key)?;
            }
            self.shaped = true;
        }
        Ok(())
    }

    fn forward(&mut self, _: &D, _: &[Blob<T, D>], top: &[Blob<T, D>]) -> Result<()> {
        let key = self.key.child(self.passes);
        for ((top, filler), i) in top.iter().zip(&self.fillers).zip(0..) {
            if !matches!(filler, Filler::Constant { .. }) {
                filler.fill(top, key.child(i))?;
            }
        }
        self.passes += 1;
        Ok(())
    }

    fn backward(
        &mut self,
        _: &D,
        _: &[Blob<T, D>],
        _: PropagateDown<'_>,
        _: &[Blob<T, D>],
    ) -> Result<()> {
        Ok(())
    }
}
