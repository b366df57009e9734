//! Tests of the fusion of a convolution or an InnerProduct layer with the following activation. Fused and separate layers
//! must give bit-identical results. A net must not fuse layers if another layer or a caller needs
//! the convolution's result.

use crate::remote::Observed;
use cortado::{
    CpuDevice, Device, Element, Net, Solver, bf16,
    device::{SimulatedDevice, simulated::Fault},
    f16,
    proto::{self, Phase},
};
use std::sync::atomic::Ordering::Relaxed;

/// Net definition that ends with a convolution from bottom `x` to top `c`.
const CONVOLUTION: &str = "
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, 3, 9, 8] } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'c'
      convolution_param { num_output: 4 kernel_size: 3 pad: 1
        weight_filler { type: 'xavier' } bias_filler { value: 0.1 } } }
";

/// Net definition that ends with an InnerProduct layer from bottom `x` to top `c`.
const INNER_PRODUCT: &str = "
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, 30] } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'c'
      inner_product_param { num_output: 7
        weight_filler { type: 'xavier' } bias_filler { value: 0.1 } } }
";

/// Returns the definition of a layer with bottom `c` and top `top`.
fn layer_after(kind: &str, top: &str, rest: &str) -> String {
    format!("layer {{ name: 'next' type: '{kind}' bottom: 'c' top: '{top}' {rest} }}")
}

/// Returns definitions of layers that a net must fuse with the preceding convolution.
fn fusible_layers() -> Vec<String> {
    vec![
        layer_after("ReLU", "c", ""),
        layer_after("ReLU", "c", "relu_param { negative_slope: 0.1 }"),
        layer_after("TanH", "c", ""),
        layer_after("Sigmoid", "c", ""),
    ]
}

/// Returns definitions of layers that a net must not fuse with the preceding convolution.
fn other_layers() -> Vec<String> {
    vec![
        // If `negative_slope` is below 0, the gradient of ReLU needs the input, which an in-place
        // layer overwrites.
        layer_after("ReLU", "c", "relu_param { negative_slope: -0.5 }"),
        layer_after("Swish", "c", ""),
        layer_after("ReLU", "y", ""),
        layer_after("ReLU", "y", "") + "layer { name: 'also' type: 'TanH' bottom: 'c' top: 'z' }",
        layer_after("ReLU", "c", "loss_weight: 1"),
        layer_after("PReLU", "c", ""),
        layer_after("Power", "y", "") + "layer { name: 'last' type: 'ReLU' bottom: 'c' top: 'z' }",
    ]
}

fn net<T: Element, D: Device>(text: &str, device: &D, phase: Phase) -> Net<T> {
    let definition = proto::parse_text(text, "net.prototxt").unwrap();
    let net: Net<T> = Net::builder(device).phase(phase).seed(5).build(&definition).unwrap();
    let mut x = net.blob("x").unwrap().data_mut().unwrap();
    let values = x.host_mut().unwrap().iter_mut().enumerate();
    values.for_each(|(i, x)| *x = T::from_f64((i as f64 * 0.7).sin()));
    drop(x);
    net
}

fn forward_one_by_one<T: Element>(net: &mut Net<T>) -> f64 {
    let layers = 0..net.layer_names().len();
    layers.map(|index| net.forward_layers(index..index + 1).unwrap()).sum()
}

fn bytes<T: Element>(net: &Net<T>) -> Vec<u8> {
    let blobs =
        net.blobs().map(|(_, blob)| T::bytes_of(blob.data().unwrap().host().unwrap()).to_vec());
    blobs.collect::<Vec<_>>().concat()
}

fn values(net: &Net<f32>, blob: &str) -> Vec<f32> {
    net.blob(blob).unwrap().data().unwrap().host().unwrap().to_vec()
}

fn assert_bit_identical<T: Element, D: Device>(device: &D) {
    for next in fusible_layers().into_iter().chain(other_layers()) {
        for first in [CONVOLUTION, INNER_PRODUCT] {
            let text = first.to_owned() + &next;
            let [mut one, mut two] = [0, 1].map(|_| net::<T, D>(&text, device, Phase::Train));
            assert_eq!(one.forward().unwrap(), forward_one_by_one(&mut two), "{next}");
            assert!(bytes(&one) == bytes(&two), "{next}");
        }
    }
}

#[test]
fn fused_layers_have_results_bit_identical_to_separate_layers() {
    for threads in [1, 3] {
        let device = CpuDevice::with_threads(threads).unwrap();
        assert_bit_identical::<f32, _>(&device);
        assert_bit_identical::<f64, _>(&device);
        assert_bit_identical::<f16, _>(&device);
        assert_bit_identical::<bf16, _>(&device);
    }
    assert_bit_identical::<f32, _>(&SimulatedDevice::new());
    assert_bit_identical::<bf16, _>(&SimulatedDevice::new());
    assert_bit_identical::<f32, _>(&Observed::default());
}

#[test]
fn only_fusible_activations_are_fused() {
    let fused_count = |text: &str, phase| {
        let device = Observed::default();
        net::<f32, _>(text, &device, phase).forward().unwrap();
        device.fused_count.load(Relaxed)
    };
    for phase in [Phase::Train, Phase::Test] {
        for next in fusible_layers() {
            assert_eq!(fused_count(&(CONVOLUTION.to_owned() + &next), phase), 1, "{next}");
        }
        for next in other_layers() {
            assert_eq!(fused_count(&(CONVOLUTION.to_owned() + &next), phase), 0, "{next}");
        }
    }
    // Layers that read the result of the activation do not prevent the fusion of convolution and
    // activation.
    let reading_layers = layer_after("ReLU", "c", "")
        + "layer { name: 'a' type: 'TanH' bottom: 'c' top: 'a' }
           layer { name: 'b' type: 'TanH' bottom: 'c' top: 'b' }";
    assert_eq!(fused_count(&(CONVOLUTION.to_owned() + &reading_layers), Phase::Train), 1);
}

#[test]
fn a_partial_pass_that_ends_before_the_activation_is_not_fused() {
    let device = Observed::default();
    let text = CONVOLUTION.to_owned() + &layer_after("ReLU", "c", "");
    let mut net = net::<f32, _>(&text, &device, Phase::Train);
    net.forward_layers(0..2).unwrap();
    assert_eq!(device.fused_count.load(Relaxed), 0);
    let c = |net: &Net<f32>| values(net, "c");
    let sums = c(&net);
    assert!(sums.iter().any(|&sum| sum < 0.0));
    net.forward_layers(2..3).unwrap();
    let want: Vec<f32> = sums.iter().map(|sum| sum.max(0.0)).collect();
    assert_eq!(c(&net), want);
    net.forward_layers(1..3).unwrap();
    assert_eq!((c(&net), device.fused_count.load(Relaxed)), (want, 1));
}

#[test]
fn an_error_of_a_fused_layer_names_both_layers() {
    let device = SimulatedDevice::new();
    let text = CONVOLUTION.to_owned() + &layer_after("ReLU", "c", "");
    let mut net = net::<f32, _>(&text, &device, Phase::Train);
    for launch in [1, 2] {
        device.inject_fault(Fault::Launch, launch);
        let error = net.forward().unwrap_err().to_string();
        for part in ["layer `conv` (Convolution)", "`next`", "injected"] {
            assert!(error.contains(part), "{error}");
        }
    }
    net.forward().unwrap();
}

#[test]
fn fused_layers_in_nets_that_reuse_memory_have_the_same_results() {
    let text = CONVOLUTION.to_owned()
        + &layer_after("ReLU", "c", "")
        + "layer { name: 'second' type: 'Convolution' bottom: 'c' top: 'd'
             convolution_param { num_output: 3 kernel_size: 2
               weight_filler { type: 'xavier' } } }
           layer { name: 'tanh' type: 'TanH' bottom: 'd' top: 'd' }
           layer { name: 'pool' type: 'Pooling' bottom: 'd' top: 'y'
             pooling_param { kernel_size: 2 } }";
    let device = Observed::default();
    let mut separate_net = net::<f32, _>(&text, &device, Phase::Test);
    forward_one_by_one(&mut separate_net);
    assert_eq!(device.fused_count.load(Relaxed), 0);
    let definition = proto::parse_text(&text, "net.prototxt").unwrap();
    let builder = Net::<f32>::builder(&device).seed(5).reuse_memory(true);
    let mut reusing_net = builder.build(&definition).unwrap();
    let [x, mut target] = [&separate_net, &reusing_net].map(|net| net.blob("x").unwrap().share());
    target.copy_from(&x, false, false).unwrap();
    reusing_net.forward().unwrap();
    assert_eq!(device.fused_count.load(Relaxed), 2);
    assert_eq!(values(&reusing_net, "y"), values(&separate_net, "y"));
}

/// With `debug_info`, a solver runs the layers of its net one by one and fuses no layers.
#[test]
fn training_with_fused_layers_is_bit_identical() {
    let train = |rest: &str| {
        let device = Observed::default();
        let text = format!(
            "base_lr: 0.05 lr_policy: 'fixed' random_seed: 3 snapshot_after_train: false {rest}
             net_param {{
               layer {{ name: 'data' type: 'Data' top: 'data' top: 'label'
                 transform_param {{ scale: 0.00390625 }}
                 data_param {{ source: 'digits:train?count=8&seed=1' batch_size: 8 }} }}
               layer {{ name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
                 convolution_param {{ num_output: 4 kernel_size: 5 stride: 2
                   weight_filler {{ type: 'xavier' }} }} }}
               layer {{ name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }}
               layer {{ name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
                 inner_product_param {{ num_output: 10 weight_filler {{ type: 'xavier' }} }} }}
               layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label'
                 top: 'loss' }} }}"
        );
        let param = proto::parse_text(text, "solver.prototxt").unwrap();
        let mut solver = Solver::<f32>::new(param, &device).unwrap();
        solver.step(4).unwrap();
        let weights = solver.net().learnable_params().map(|param| {
            let data = param.blob().data().unwrap();
            data.host().unwrap().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        });
        (weights.collect::<Vec<_>>().concat(), device.fused_count.load(Relaxed))
    };
    let (fused_weights, fused_count) = train("");
    let (weights, unfused_count) = train("debug_info: true display: 1");
    assert_eq!((fused_count, unfused_count), (4, 0));
    assert!(fused_weights == weights, "weights differ");
}

/// After a fused layer, the range of the layers that have not run yet no longer contains the
/// activation.
#[test]
fn an_inner_product_is_fused_only_if_it_has_a_bias() {
    let layers_left = |text: &str| {
        let text = text.to_owned() + &layer_after("ReLU", "c", "");
        let mut net = net::<f32, _>(&text, &CpuDevice::new(), Phase::Train);
        let mut layers = 1..3;
        net.forward_first(&mut layers).unwrap();
        layers.len()
    };
    assert_eq!(layers_left(INNER_PRODUCT), 0);
    let without_bias = INNER_PRODUCT.replace("num_output: 7", "num_output: 7 bias_term: false");
    assert_eq!(layers_left(&without_bias), 1);
}
