//! The mean of the last few losses.

/// Running mean over a window.
pub(super) struct Smoothed {
    losses: Vec<f64>,
    window: usize,
    next: usize,
    mean: f64,
}

impl Smoothed {
    pub(super) fn new(window: usize) -> Self {
        Self { losses: Vec::new(), window, next: 0, mean: 0.0 }
    }

    /// The mean, once `loss` has come in.
    pub(super) fn add(&mut self, loss: f64) -> f64 {
        if self.losses.len() < self.window {
            self.losses.push(loss);
            let count = self.losses.len() as f64;
            self.mean = (self.mean * (count - 1.0) + loss) / count;
        } else {
            let oldest = std::mem::replace(&mut self.losses[self.next], loss);
            self.mean += (loss - oldest) / self.window as f64;
            self.next = (self.next + 1) % self.window;
        }
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_the_last_three() {
        let mut smoothed = Smoothed::new(3);
        let means = [6.0, 0.0, 3.0, 9.0, 0.0].map(|loss| smoothed.add(loss));
        assert_eq!(means, [6.0, 3.0, 3.0, 4.0, 4.0]);
    }
}
