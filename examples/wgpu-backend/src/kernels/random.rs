//! Kernels that generate Bernoulli samples and random integers. The kernels for uniform and normal
//! numbers run on the host, because these kernels compute in double precision, which WGSL lacks.

use crate::{
    device::WgpuDevice,
    kernel::{EACH, Kernel},
};
use cortado::{
    Error, Result, ViewMut,
    kernel::{Random, fallback},
    op::RngKey,
};

/// Kernel that generates one random word per element with the Philox generator. Variants of the
/// kernel compare each random word with a limit, or multiply the word by a limit. The kernel
/// receives the limit as `limit - 1`, because the limit may be 2³², which does not fit in 32 bits.
const WORDS: Kernel = Kernel {
    name: "random",
    reads: &[],
    writes: &["y: u32"],
    scalars: &["seed_low", "seed_high", "stream_low", "stream_high", "limit_minus_1"],
    body: &[include_str!("../shaders/philox.wgsl"), EACH],
};

impl WgpuDevice {
    /// Fills `y` with `f(word)` for the random words that `key` determines. `limit` must not be 0,
    /// because the WGSL expression `f` reads `limit - 1` as `p.limit_minus_1`.
    fn fill_random(
        &self,
        name: &str,
        f: &str,
        (key, limit): (RngKey, u64),
        mut y: ViewMut<'_, u32, Self>,
    ) -> Result<()> {
        let n = y.len();
        let source = || format!("fn f(word: u32) -> u32 {{ return {f}; }}\n");
        let launch = WORDS.variant(self, name, source).write(y.device_write_only()?);
        let word_halves = |word: u64| [word as u32 as usize, (word >> 32) as usize];
        let launch = launch.sizes(word_halves(key.seed)).sizes(word_halves(key.stream));
        launch.sizes([(limit - 1) as usize]).each(n)
    }
}

impl Random for WgpuDevice {
    fn bernoulli(&self, key: RngKey, p: f64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        let Some(_scope) = self.native_words("bernoulli") else {
            return fallback::bernoulli(self, key, p, y);
        };
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::invalid_input("bernoulli", format!("p is {p}, expected 0 ≤ p ≤ 1")));
        }
        match (p * 4_294_967_296.0).ceil() as u64 {
            0 => self.fill_random("never", "0u", (key, 1), y),
            limit => self.fill_random(
                "bernoulli",
                "select(0u, 1u, word <= p.limit_minus_1)",
                (key, limit),
                y,
            ),
        }
    }

    fn random_integers(&self, key: RngKey, bound: u64, y: ViewMut<'_, u32, Self>) -> Result<()> {
        let Some(_scope) = self.native_words("random_integers") else {
            return fallback::random_integers(self, key, bound, y);
        };
        if !(1..=1 << 32).contains(&bound) {
            return Err(Error::invalid_input(
                "random_integers",
                format!("bound is {bound}, expected 1 ≤ bound ≤ 2³²"),
            ));
        }
        // A random integer is the upper 32 bits of the product `word · bound`, computed as
        // `word · (bound − 1) + word`.
        let upper_word = "times(word, p.limit_minus_1).y \
                          + select(0u, 1u, times(word, p.limit_minus_1).x > ~word)";
        self.fill_random("random_integers", upper_word, (key, bound), y)
    }
}
