//! Trains LeNet on images of digits that cortado generates, and prints the accuracy of each test.
//!
//! Run `cargo run --release --example train_lenet` in the root of the repository. The optional
//! argument is the maximum number of iterations.

use cortado::{
    prelude::*,
    solver::{Event, read_definition},
};

fn main() -> Result<()> {
    let mut definition = read_definition("examples/digits/solver.prototxt")?;
    if let Some(iterations) = std::env::args().nth(1).and_then(|number| number.parse().ok()) {
        definition.max_iter = Some(iterations);
    }
    definition.snapshot_after_train = Some(false);

    let mut solver = Solver::<f32>::new(definition, &CpuDevice::new())?;
    solver.add_observer(|event| match event {
        Event::Displayed { iteration, loss, .. } => println!("{iteration:5}: loss {loss:.4}"),
        Event::Tested { iteration, outputs, .. } => {
            println!("{iteration:5}: accuracy {:.4}", outputs[0].value);
        }
        _ => {}
    });
    solver.solve()
}
