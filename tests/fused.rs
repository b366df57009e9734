//! A convolution and the activation after it run as one where nothing can tell, with the bits that
//! they have one after the other.
#![cfg(feature = "net")]

use cortado::{
    CpuDevice, Device, Element, Memory, Net, Result, Solver, View, ViewMut, bf16,
    device::{SimulatedDevice, simulated::Fault},
    f16,
    kernel::{Conv, fallback},
    op::{Convolution, Unary},
    proto::{self, Phase},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Memory that is reached only by copies; it counts convolutions that are activated.
#[derive(Clone, Debug, Default)]
struct Counting {
    activated: Arc<AtomicUsize>,
}

impl Memory for Counting {
    type Buffer = Vec<u8>;

    fn name(&self) -> String {
        "counting".into()
    }
    fn alloc(&self, bytes: usize) -> Result<Vec<u8>> {
        Ok(vec![0; bytes])
    }
    fn upload(&self, src: &[u8], dst: &mut Vec<u8>, at: usize) -> Result<()> {
        dst[at..at + src.len()].copy_from_slice(src);
        Ok(())
    }
    fn download(&self, src: &Vec<u8>, at: usize, dst: &mut [u8]) -> Result<()> {
        dst.copy_from_slice(&src[at..at + dst.len()]);
        Ok(())
    }
}

impl Conv for Counting {
    fn convolve_with_activation<T: Element>(
        &self,
        op: &Convolution,
        x: View<'_, T, Self>,
        filters: View<'_, T, Self>,
        bias: Option<View<'_, T, Self>>,
        function: Unary<T::Acc>,
        y: ViewMut<'_, T, Self>,
    ) -> Result<()> {
        self.activated.fetch_add(1, Relaxed);
        fallback::convolve_with_activation(self, op, x, filters, bias, function, y)
    }
}

cortado::families!(
    Counting: Blas, Elementwise, Reductions, Random, Pooling, Normalize, Losses, Indexing, Update
);

/// A convolution of `x` to `c`.
const CONVOLUTION: &str = "
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [2, 3, 9, 8] } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'c'
      convolution_param { num_output: 4 kernel_size: 3 pad: 1
        weight_filler { type: 'xavier' } bias_filler { value: 0.1 } } }
";

/// A layer from `c` to `top`.
fn after(kind: &str, top: &str, rest: &str) -> String {
    format!("layer {{ name: 'next' type: '{kind}' bottom: 'c' top: '{top}' {rest} }}")
}

/// Activations in place that may be run with what is before them.
fn activations() -> Vec<String> {
    vec![
        after("ReLU", "c", ""),
        after("ReLU", "c", "relu_param { negative_slope: 0.1 }"),
        after("TanH", "c", ""),
        after("Sigmoid", "c", ""),
    ]
}

/// What follows a convolution and may not be run with it.
fn others() -> Vec<String> {
    vec![
        // Its gradient asks for what it overwrites.
        after("ReLU", "c", "relu_param { negative_slope: -0.5 }"),
        after("Swish", "c", ""),
        after("ReLU", "y", ""),
        after("ReLU", "y", "") + "layer { name: 'also' type: 'TanH' bottom: 'c' top: 'z' }",
        after("ReLU", "c", "loss_weight: 1"),
        after("PReLU", "c", ""),
        after("Power", "y", "") + "layer { name: 'last' type: 'ReLU' bottom: 'c' top: 'z' }",
    ]
}

fn net<T: Element, D: Device>(text: &str, device: &D, phase: Phase) -> Net<T, D> {
    let definition = proto::parse_text(text, "a net of this test").unwrap();
    let net: Net<T, D> = Net::builder(device).phase(phase).seed(5).build(&definition).unwrap();
    let mut x = net.blob("x").unwrap().data_mut().unwrap();
    let values = x.host_mut().unwrap().iter_mut().enumerate();
    values.for_each(|(i, x)| *x = T::from_f64((i as f64 * 0.7).sin()));
    drop(x);
    net
}

fn one_by_one<T: Element, D: Device>(net: &mut Net<T, D>) -> f64 {
    let layers = 0..net.layer_names().len();
    layers.map(|place| net.forward_layers(place..place + 1).unwrap()).sum()
}

/// The bytes of all blobs.
fn bytes<T: Element, D: Device>(net: &Net<T, D>) -> Vec<u8> {
    let blobs = net.blobs().map(|(_, blob)| {
        bytemuck::cast_slice::<T, u8>(blob.data().unwrap().host().unwrap()).to_vec()
    });
    blobs.collect::<Vec<_>>().concat()
}

fn same_bits<T: Element, D: Device>(device: &D) {
    for next in activations().into_iter().chain(others()) {
        let text = CONVOLUTION.to_owned() + &next;
        let [mut one, mut two] = [0, 1].map(|_| net::<T, D>(&text, device, Phase::Train));
        assert_eq!(one.forward().unwrap(), one_by_one(&mut two), "{next}");
        assert!(bytes(&one) == bytes(&two), "{next}");
    }
}

#[test]
fn results_are_those_of_one_after_the_other() {
    for threads in [1, 3] {
        let device = CpuDevice::with_threads(threads).unwrap();
        same_bits::<f32, _>(&device);
        same_bits::<f64, _>(&device);
        same_bits::<f16, _>(&device);
        same_bits::<bf16, _>(&device);
    }
    same_bits::<f32, _>(&SimulatedDevice::new());
    same_bits::<bf16, _>(&SimulatedDevice::new());
    same_bits::<f32, _>(&Counting::default());
}

#[test]
fn they_run_as_one_where_nothing_can_tell() {
    let count = |text: &str, phase| {
        let device = Counting::default();
        net::<f32, _>(text, &device, phase).forward().unwrap();
        device.activated.load(Relaxed)
    };
    for phase in [Phase::Train, Phase::Test] {
        for next in activations() {
            assert_eq!(count(&(CONVOLUTION.to_owned() + &next), phase), 1, "{next}");
        }
        for next in others() {
            assert_eq!(count(&(CONVOLUTION.to_owned() + &next), phase), 0, "{next}");
        }
    }
    // Whoever reads the activation's result comes later.
    let readers = after("ReLU", "c", "")
        + "layer { name: 'a' type: 'TanH' bottom: 'c' top: 'a' }
           layer { name: 'b' type: 'TanH' bottom: 'c' top: 'b' }";
    assert_eq!(count(&(CONVOLUTION.to_owned() + &readers), Phase::Train), 1);
}

/// Parts of a net end where they are said to end.
#[test]
fn a_part_that_ends_between_them_does_not_run_the_second() {
    let device = Counting::default();
    let text = CONVOLUTION.to_owned() + &after("ReLU", "c", "");
    let mut net = net::<f32, _>(&text, &device, Phase::Train);
    net.forward_layers(0..2).unwrap();
    assert_eq!(device.activated.load(Relaxed), 0);
    let of =
        |net: &Net<f32, Counting>| net.blob("c").unwrap().data().unwrap().host().unwrap().to_vec();
    let sums = of(&net);
    assert!(sums.iter().any(|&sum| sum < 0.0));
    net.forward_layers(2..3).unwrap();
    let want: Vec<f32> = sums.iter().map(|sum| sum.max(0.0)).collect();
    assert_eq!(of(&net), want);
    net.forward_layers(1..3).unwrap();
    assert_eq!((of(&net), device.activated.load(Relaxed)), (want, 1));
}

#[test]
fn an_error_of_either_names_both() {
    let device = SimulatedDevice::new();
    let text = CONVOLUTION.to_owned() + &after("ReLU", "c", "");
    let mut net = net::<f32, _>(&text, &device, Phase::Train);
    for launch in [1, 2] {
        device.inject_fault(Fault::Launch, launch);
        let error = net.forward().unwrap_err().to_string();
        let said = error.contains("layer `conv` (Convolution)") && error.contains("`next`");
        assert!(said && error.contains("injected"), "{error}");
    }
    net.forward().unwrap();
}

#[test]
fn nets_that_reuse_memory_have_the_same_results() {
    let text = CONVOLUTION.to_owned()
        + &after("ReLU", "c", "")
        + "layer { name: 'second' type: 'Convolution' bottom: 'c' top: 'd'
             convolution_param { num_output: 3 kernel_size: 2
               weight_filler { type: 'xavier' } } }
           layer { name: 'tanh' type: 'TanH' bottom: 'd' top: 'd' }
           layer { name: 'pool' type: 'Pooling' bottom: 'd' top: 'y'
             pooling_param { kernel_size: 2 } }";
    let device = Counting::default();
    let mut whole = net::<f32, _>(&text, &device, Phase::Test);
    one_by_one(&mut whole);
    assert_eq!(device.activated.load(Relaxed), 0);
    let definition = proto::parse_text(&text, "a net of this test").unwrap();
    let builder = Net::<f32, _>::builder(&device).seed(5).reuse_memory(true);
    let mut shared = builder.build(&definition).unwrap();
    let [x, mut to] = [&whole, &shared].map(|net| net.blob("x").unwrap().share());
    to.copy_from(&x, false, false).unwrap();
    shared.forward().unwrap();
    assert_eq!(device.activated.load(Relaxed), 2);
    let result =
        |net: &Net<f32, Counting>| net.blob("y").unwrap().data().unwrap().host().unwrap().to_vec();
    assert_eq!(result(&shared), result(&whole));
}

/// With `debug_info`, a solver runs layers one by one and shows what is between them.
#[test]
fn training_leaves_the_same_weights() {
    let train = |rest: &str| {
        let device = Counting::default();
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
        let mut solver = Solver::<f32, Counting>::new(param, &device).unwrap();
        solver.step(4).unwrap();
        let weights = solver.net().learnable_params().map(|param| {
            let data = param.blob().data().unwrap();
            data.host().unwrap().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        });
        (weights.collect::<Vec<_>>().concat(), device.activated.load(Relaxed))
    };
    let (as_one, activated) = train("");
    let (one_by_one, none) = train("debug_info: true display: 1");
    assert_eq!((activated, none), (4, 0));
    assert!(as_one == one_by_one, "weights differ");
}
