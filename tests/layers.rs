//! What layers do that no other program can be asked about.
#![cfg(feature = "net")]

use cortado::{
    CpuDevice, Net, Result,
    layer::{DataLayer, MemoryDataLayer},
    proto::{self, NetParameter},
};

type CpuNet = Net<f32, CpuDevice>;

fn net(text: &str) -> Result<CpuNet> {
    let definition: NetParameter = proto::parse_text(text, "a net of this test")?;
    Net::builder(&CpuDevice::new()).build(&definition)
}

fn data(net: &CpuNet, name: &str) -> Vec<f32> {
    net.blob(name).unwrap().data().unwrap().host().unwrap().to_vec()
}

fn diff(net: &CpuNet, name: &str) -> Vec<f32> {
    net.blob(name).unwrap().diff().unwrap().host().unwrap().to_vec()
}

fn set(net: &CpuNet, name: &str, values: &[f32]) {
    let mut data = net.blob(name).unwrap().data_mut().unwrap();
    data.host_mut().unwrap().copy_from_slice(values);
}

#[test]
fn memory_data_goes_round_in_order() {
    let mut net = net("layer { name: 'in' type: 'MemoryData' top: 'x' top: 'l'
         memory_data_param { batch_size: 2 channels: 1 height: 1 width: 3 } }")
    .unwrap();
    let error = net.forward().unwrap_err().to_string();
    assert!(error.contains("layer `in`") && error.contains("reset"), "{error}");
    assert!(net.layer_as::<DataLayer<f32, CpuDevice>>("in").is_none());
    let layer = net.layer_as::<MemoryDataLayer<f32>>("in").unwrap();
    let items = |n: u16| (0..n).map(f32::from).collect::<Vec<_>>();
    assert!(layer.reset(items(9), items(3)).is_err(), "no whole batches");
    assert!(layer.reset(items(11), items(4)).is_err(), "an item too short");
    assert!(layer.reset(vec![], vec![]).is_err());
    layer.reset(items(12), items(4)).unwrap();
    for first in [0.0, 6.0, 0.0] {
        net.forward().unwrap();
        let want: Vec<f32> = items(6).iter().map(|i| i + first).collect();
        assert_eq!(data(&net, "x"), want);
        assert_eq!(data(&net, "l"), [first / 3.0, first / 3.0 + 1.0]);
    }
    let layer = net.layer_as::<MemoryDataLayer<f32>>("in").unwrap();
    layer.reset(vec![7.0; 6], vec![1.0; 2]).unwrap();
    net.forward().unwrap();
    assert_eq!(data(&net, "x"), [7.0; 6], "a reset starts anew");
}

#[test]
fn dummy_data_is_drawn_anew_and_constants_stay() {
    let mut net = net("layer { name: 'in' type: 'DummyData' top: 'c' top: 'u' dummy_data_param {
         shape { dim: 3 } data_filler { value: 2 } data_filler { type: 'uniform' } } }")
    .unwrap();
    net.forward().unwrap();
    assert_eq!(data(&net, "c"), [2.0; 3]);
    let first = data(&net, "u");
    set(&net, "c", &[1.0, 2.0, 3.0]);
    net.forward().unwrap();
    assert_eq!(data(&net, "c"), [1.0, 2.0, 3.0], "what the caller wrote");
    assert_ne!(data(&net, "u"), first);
}

#[test]
fn python_says_how_to_have_a_layer_of_ones_own() {
    let text = "layer { name: 'p' type: 'Python' top: 'y'
         python_param { module: 'm' layer: 'L' } }";
    let error = net(text).err().unwrap().to_string();
    for word in ["layer `p`", "`m.L`", "LayerRegistry::with", "NetBuilder::registry"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn gradients_of_a_parameter_add_up() {
    let mut net = net("layer { name: 'p' type: 'Parameter' top: 'p'
           parameter_param { shape { dim: 2 } } }
         layer { name: 'sum' type: 'Reduction' bottom: 'p' top: 'sum' loss_weight: 3 }")
    .unwrap();
    for passes in [1.0, 2.0] {
        net.forward().unwrap();
        net.backward().unwrap();
        let param = net.params()[0].blob().share();
        assert_eq!(param.diff().unwrap().host().unwrap(), [3.0 * passes; 2]);
        assert!(param.shares_data_with(net.blob("p").unwrap()));
    }
}

#[test]
fn another_shape_is_no_copy() {
    let mut net = net("force_backward: true
         layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
         layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r'
           reshape_param { shape { dim: 3 dim: -1 } } }
         layer { name: 'f' type: 'Flatten' bottom: 'r' top: 'f' flatten_param { axis: 0 } }
         layer { name: 'sum' type: 'Reduction' bottom: 'f' top: 'sum' loss_weight: 1 }")
    .unwrap();
    for extents in [[2, 3], [6, 5], [1, 3]] {
        net.blob_mut("x").unwrap().reshape(&extents).unwrap();
        net.forward().unwrap();
        net.backward().unwrap();
        let (x, f) = (net.blob("x").unwrap(), net.blob("f").unwrap());
        assert!(f.shares_data_with(x) && f.shares_diff_with(x), "{extents:?}");
        assert_eq!(diff(&net, "x"), vec![1.0; extents.iter().product()]);
    }
}

#[test]
fn a_diff_that_is_left_out_stays_zero() {
    // `side` computes its bottom's gradient, the Flatten above it is told not to hand it on.
    let mut net = net("layer { name: 'p' type: 'Parameter' top: 'p'
           parameter_param { shape { dim: 2 } } }
         layer { name: 'f' type: 'Flatten' bottom: 'p' top: 'f' propagate_down: false
           flatten_param { axis: 0 } }
         layer { name: 'side' type: 'Reduction' bottom: 'f' top: 'side' loss_weight: 5
           propagate_down: true }
         layer { name: 'main' type: 'Reduction' bottom: 'p' top: 'main' loss_weight: 1 }")
    .unwrap();
    net.forward().unwrap();
    net.backward().unwrap();
    assert_eq!(net.params()[0].blob().diff().unwrap().host().unwrap(), [1.0; 2]);
}

#[test]
fn the_reference_of_a_crop_has_no_gradient() {
    let mut net = net("force_backward: true
         layer { name: 'in' type: 'Input' top: 'x' top: 'like'
           input_param { shape { dim: 2 dim: 2 dim: 3 dim: 4 }
                         shape { dim: 2 dim: 1 dim: 2 dim: 2 } } }
         layer { name: 'c' type: 'Crop' bottom: 'x' bottom: 'like' top: 'y'
           crop_param { axis: 1 offset: 1 offset: 0 offset: 2 } }
         layer { name: 'sum' type: 'Reduction' bottom: 'y' top: 'sum' loss_weight: 1 }")
    .unwrap();
    set(&net, "x", &(0u16..48).map(f32::from).collect::<Vec<_>>());
    net.blob("like").unwrap().diff_mut().unwrap().host_mut().unwrap().fill(9.0);
    net.forward().unwrap();
    net.backward().unwrap();
    let kept = [14.0, 15.0, 18.0, 19.0, 38.0, 39.0, 42.0, 43.0];
    assert_eq!(data(&net, "y"), kept);
    let ones = (0u16..48).map(|i| f32::from(u8::from(kept.contains(&f32::from(i)))));
    assert_eq!(diff(&net, "x"), ones.collect::<Vec<_>>());
    assert_eq!(diff(&net, "like"), [0.0; 8]);
}

#[test]
fn nothing_may_be_filtered_out() {
    let mut net = net("layer { name: 'in' type: 'Input' top: 'x' top: 's'
           input_param { shape { dim: 3 dim: 2 } shape { dim: 3 } } }
         layer { name: 'f' type: 'Filter' bottom: 'x' bottom: 's' top: 'y' }")
    .unwrap();
    assert_eq!(net.blob("y").unwrap().shape()[..], [3, 2], "before the first pass");
    set(&net, "x", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (selector, want) in [
        ([0.0, 0.0, 0.0], &[][..]),
        ([0.0, -1.0, 0.0], &[3.0, 4.0]),
        ([1.0, 0.0, 0.5], &[1.0, 2.0, 5.0, 6.0]),
    ] {
        set(&net, "s", &selector);
        net.forward().unwrap();
        assert_eq!(data(&net, "y"), want);
    }
}

#[test]
fn indices_that_no_row_has_are_refused() {
    for (layer, bad) in [
        ("type: 'Embed' bottom: 'i' top: 'y' embed_param { input_dim: 4 num_output: 2 }", 4.0),
        ("type: 'BatchReindex' bottom: 'x' bottom: 'i' top: 'y'", 3.0),
        ("type: 'BatchReindex' bottom: 'x' bottom: 'i' top: 'y'", 0.5),
        ("type: 'HingeLoss' bottom: 'x' bottom: 'i' top: 'y'", 2.0),
        ("type: 'MultinomialLogisticLoss' bottom: 'x' bottom: 'i' top: 'y'", -1.0),
        ("type: 'Accuracy' bottom: 'x' bottom: 'i' top: 'y' top: 'z'", 2.0),
    ] {
        let mut net = net(&format!(
            "layer {{ name: 'in' type: 'Input' top: 'x' top: 'i'
               input_param {{ shape {{ dim: 3 dim: 2 }} shape {{ dim: 3 }} }} }}
             layer {{ name: 'bad' {layer} }}"
        ))
        .unwrap();
        set(&net, "i", &[0.0, bad, 1.0]);
        let error = net.forward().unwrap_err().to_string();
        assert!(error.contains("layer `bad`") && error.contains(&bad.to_string()), "{error}");
        set(&net, "i", &[0.0, 1.0, 1.0]);
        net.forward().unwrap();
    }
}
