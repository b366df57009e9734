//! The mean of the last `average_loss` losses of training.

pub(super) struct SmoothedLoss {
    losses: Vec<f64>,
    window: usize,
    /// The index of the oldest loss in `losses` if `losses` has `window` elements.
    oldest: usize,
    mean: f64,
}

impl SmoothedLoss {
    pub(super) fn new(window: usize) -> Self {
        Self { losses: Vec::new(), window, oldest: 0, mean: 0.0 }
    }

    /// Adds a loss and returns the mean of the losses in the window.
    pub(super) fn add(&mut self, loss: f64) -> f64 {
        if self.losses.len() < self.window {
            self.losses.push(loss);
            let count = self.losses.len() as f64;
            self.mean = (self.mean * (count - 1.0) + loss) / count;
        } else {
            let oldest = std::mem::replace(&mut self.losses[self.oldest], loss);
            self.mean += (loss - oldest) / self.window as f64;
            self.oldest = (self.oldest + 1) % self.window;
        }
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_loss_is_the_mean_of_the_last_losses_only() {
        let mut smoothed_loss = SmoothedLoss::new(3);
        let means = [6.0, 0.0, 3.0, 9.0, 0.0].map(|loss| smoothed_loss.add(loss));
        assert_eq!(means, [6.0, 3.0, 3.0, 4.0, 4.0]);
    }
}
