//! Where the messages of a net went, for what is known of them by their place only.

use crate::proto::{NetParameter, PathStep, schema::Schema};

/// Where the layers of a net went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moves {
    /// The place of each layer as it was; nowhere for a padding layer.
    layers: Vec<Option<usize>>,
    /// Whether the first layer is a new one, which holds the inputs.
    inputs: bool,
}

impl Moves {
    /// Compares a net with what it was: `stays` tells of each layer whether it is still there.
    pub(super) fn new(stays: &[bool], net: &NetParameter) -> Self {
        let kept = stays.iter().filter(|&&stays| stays).count();
        let inputs = net.layer.len() > kept;
        let mut places = usize::from(inputs)..;
        let layers = stays.iter().map(|&stays| if stays { places.next() } else { None }).collect();
        Self { layers, inputs }
    }

    /// The path to where a message is now. What is gone keeps its path, which leads nowhere.
    pub(super) fn follow(&self, path: &mut Vec<PathStep>) {
        let Some(&first) = path.first() else { return };
        match name("NetParameter", first.field) {
            Some("input_shape") if self.inputs => {
                let to = [("NetParameter", "layer"), ("LayerParameter", "input_param")];
                let to = to.into_iter().filter_map(|(message, field)| step(message, field, 0));
                let shape = step("InputParameter", "shape", first.index);
                path.splice(..1, to.chain(shape));
            }
            Some(old @ ("layer" | "layers")) => {
                let Some(&Some(place)) = self.layers.get(first.index) else { return };
                path.splice(..1, step("NetParameter", "layer", place));
                if old == "layers" {
                    modernise(path);
                }
            }
            _ => {}
        }
    }
}

/// Gives the second step the number that its field has in today's layers. Names have stayed.
fn modernise(path: &mut Vec<PathStep>) {
    let mut layer = "V1LayerParameter";
    // Fields of a V0 layer are in a message inside that of the V1 format.
    if path.get(1).and_then(|step| name(layer, step.field)) == Some("layer") {
        path.remove(1);
        layer = "V0LayerParameter";
    }
    if let Some(inner) = path.get_mut(1) {
        let today = name(layer, inner.field).and_then(|name| step("LayerParameter", name, 0));
        inner.field = today.map_or(inner.field, |today| today.field);
    }
}

fn name(message: &str, number: u32) -> Option<&'static str> {
    Some(schema(message)?.field(number)?.1.name)
}

fn step(message: &str, name: &str, index: usize) -> Option<PathStep> {
    Some(PathStep { field: schema(message)?.named(name)?.number, index })
}

fn schema(message: &str) -> Option<&'static Schema> {
    Schema::of(&format!("caffe.{message}"))
}
