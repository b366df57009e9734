//! Random numbers that are made of words. Uniform and normal ones are left to the host: all of
//! their arithmetic is in double precision.

use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Error, Result, ViewMut,
    kernel::{Random, fallback},
    op::RngKey,
};

/// A word for each element; `most` is one less than the limit that variants compare or scale with.
const WORDS: Kernel = Kernel {
    name: "random",
    reads: &[],
    writes: &["y: u32"],
    scalars: &["seed_low", "seed_high", "stream_low", "stream_high", "most"],
    body: &[include_str!("../shaders/philox.wgsl"), EACH],
};

impl WgpuDevice {
    /// `f` of the words of `key`, for numbers below `limit`, which is not 0.
    fn words(
        &self,
        name: &str,
        f: &str,
        (key, limit): (RngKey, u64),
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let n = y.len();
        let source = || format!("fn f(word: u32) -> u32 {{ return {f}; }}\n");
        let launch = WORDS.variant(self, name, source).write(y.device_write_only()?);
        let halves = |word: u64| [word as u32 as usize, (word >> 32) as usize];
        let launch = launch.sizes(halves(key.seed)).sizes(halves(key.stream));
        launch.sizes([(limit - 1) as usize]).each(n)
    }
}

impl Random for WgpuDevice {
    fn bernoulli(&self, key: RngKey, p: f64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        let Some(_running) = self.native_words("bernoulli") else {
            return fallback::bernoulli(self, key, p, y);
        };
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value("bernoulli", format!("needs 0 ≤ p ≤ 1, not {p}")));
        }
        match (p * 4_294_967_296.0).ceil() as u64 {
            0 => self.words("never", "0u", (key, 1), y),
            below => self.words("bernoulli", "select(0u, 1u, word <= p.most)", (key, below), y),
        }
    }

    fn integer(&self, key: RngKey, bound: u64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        let Some(_running) = self.native_words("integer") else {
            return fallback::integer(self, key, bound, y);
        };
        if !(1..=1 << 32).contains(&bound) {
            return Err(Error::value("integer", format!("needs 1 ≤ bound ≤ 2³², not {bound}")));
        }
        // word · bound = word · most + word; the upper half of that.
        let upper = "times(word, p.most).y + select(0u, 1u, times(word, p.most).x > ~word)";
        self.words("integer", upper, (key, bound), y)
    }
}
