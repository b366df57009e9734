//! Stochastic pooling: what is drawn, and what stands for it in the TEST phase.
#![cfg(feature = "net")]

use cortado::{
    CpuDevice, Net,
    proto::{self, NetParameter, Phase},
};

/// Two planes of 4 × 5 under windows of 2 × 2 that hang over the edge.
const NET: &str = "force_backward: true
    layer { name: 'x' type: 'Input' top: 'x'
      input_param { shape { dim: 1 dim: 2 dim: 4 dim: 5 } } }
    layer { name: 'p' type: 'Pooling' bottom: 'x' top: 'y'
      pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 } }";

fn net(phase: Phase) -> Net<f64, CpuDevice> {
    let definition: NetParameter = proto::parse_text(NET, "net.prototxt").unwrap();
    Net::builder(&CpuDevice::new()).phase(phase).seed(5).build(&definition).unwrap()
}

/// Some positive, some negative, windows without any of the first.
fn x() -> Vec<f64> {
    (0..40).map(|i| if [0, 1, 5, 6].contains(&i) { -1.0 } else { (i as f64).sin() + 0.6 }).collect()
}

fn forward(net: &mut Net<f64, CpuDevice>, x: &[f64]) -> Vec<f64> {
    net.blob("x").unwrap().data_mut().unwrap().host_mut().unwrap().copy_from_slice(x);
    net.forward().unwrap();
    net.blob("y").unwrap().data().unwrap().host().unwrap().to_vec()
}

fn backward(net: &mut Net<f64, CpuDevice>, dy: &[f64]) -> Vec<f64> {
    net.blob("y").unwrap().diff_mut().unwrap().host_mut().unwrap().copy_from_slice(dy);
    net.backward().unwrap();
    net.blob("x").unwrap().diff().unwrap().host().unwrap().to_vec()
}

/// The elements that each of the twelve windows covers.
fn windows() -> Vec<Vec<usize>> {
    let window = |w: usize| {
        let (plane, row, column) = (w / 6, w % 6 / 3 * 2, w % 3 * 2);
        let rows =
            (row..row + 2).flat_map(move |r| (column..5.min(column + 2)).map(move |c| (r, c)));
        rows.map(|(r, c)| plane * 20 + r * 5 + c).collect()
    };
    (0..12).map(window).collect()
}

#[test]
fn passes_draw_anew_and_runs_repeat() {
    let (mut net, mut again) = (net(Phase::Train), net(Phase::Train));
    let (x, dy) = (x(), (1..=12).map(f64::from).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for _ in 0..20 {
        let y = forward(&mut net, &x);
        assert_eq!(y, forward(&mut again, &x));
        let dx = backward(&mut net, &dy);
        for (w, window) in windows().into_iter().enumerate() {
            let drawn: Vec<_> = window.iter().filter(|&&at| dx[at] != 0.0).collect();
            assert_eq!(drawn.len(), 1);
            assert_eq!((x[*drawn[0]], dx[*drawn[0]]), (y[w], dy[w]));
            assert!(y[w] > 0.0 || window.iter().all(|&at| x[at] <= 0.0));
        }
        seen.push(y);
    }
    seen.dedup();
    assert!(seen.len() > 15, "{} different draws of 20", seen.len());
}

#[test]
fn the_weighted_mean_and_its_gradient() {
    let mut net = net(Phase::Test);
    let (x, dy) = (x(), (1..=12).map(f64::from).collect::<Vec<_>>());
    let mean = |x: &[f64]| -> Vec<f64> {
        let of = |window: Vec<usize>| {
            let positive = || window.iter().map(|&at| x[at].max(0.0));
            let sum: f64 = positive().sum();
            if sum > 0.0 { positive().map(|x| x * x).sum::<f64>() / sum } else { 0.0 }
        };
        windows().into_iter().map(of).collect()
    };
    for (got, want) in forward(&mut net, &x).iter().zip(mean(&x)) {
        assert!((got - want).abs() < 1e-12, "{got} for {want}");
    }
    let objective = |x: &[f64]| mean(x).iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>();
    for (at, got) in backward(&mut net, &dy).into_iter().enumerate() {
        let [mut less, mut more] = [x.clone(), x.clone()];
        (less[at], more[at]) = (less[at] - 1e-6, more[at] + 1e-6);
        let want = (objective(&more) - objective(&less)) / 2e-6;
        assert!((got - want).abs() < 1e-6, "{at}: {got} for {want}");
    }
}
