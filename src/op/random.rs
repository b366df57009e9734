//! Counter-based random numbers: Philox4x32-10.
//!
//! The random number of an element depends only on the key and the element's index. Random numbers
//! are bit-identical on every device, for any number of threads and any order of computation.
//! Philox was introduced by Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
//! 2, 3", SC 2011.

use rand_core::{Infallible, TryRng};

/// Key that selects one stream of random numbers.
///
/// ```
/// use cortado::op::RngKey;
///
/// let run = RngKey::new(7);
/// let [first, second] = ["conv1", "conv2"].map(|layer| run.named_child(layer));
/// assert_eq!(first.words(0), RngKey::new(7).named_child("conv1").words(0));
/// assert_ne!(first.words(0), second.words(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RngKey {
    /// Seed that all streams of one program run share.
    pub seed: u64,
    /// Number of the stream. For example, each parameter, layer or forward pass can have its own
    /// stream.
    pub stream: u64,
}

impl RngKey {
    /// Returns the key of stream 0 for the seed `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, stream: 0 }
    }

    /// Derives a child key from this key and `tag`. Child keys with different tags select
    /// independent streams.
    #[must_use]
    pub fn child(self, tag: u64) -> Self {
        let [a, b, c, d] = philox(
            [tag as u32, (tag >> 32) as u32, low_word(self.stream), high_word(self.stream)],
            key(self.seed ^ CHILD_KEY_CONSTANT),
        );
        Self {
            seed: self.seed,
            stream: (u64::from(a) << 32 | u64::from(b)) ^ (u64::from(c) << 32 | u64::from(d)),
        }
    }

    /// Like [`child`](Self::child), but derives the tag from the name `name`.
    #[must_use]
    pub fn named_child(self, name: &str) -> Self {
        // The tag is the 64-bit FNV-1a hash of the name.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.child(hash)
    }

    /// Returns the four random 32-bit words of this stream for the counter value `index`.
    #[inline(always)]
    pub fn words(self, index: u64) -> [u32; 4] {
        philox(
            [low_word(index), high_word(index), low_word(self.stream), high_word(self.stream)],
            key(self.seed),
        )
    }

    /// Returns a sequential generator of this stream, for use with the distributions of the `rand`
    /// crate.
    pub fn rng(self) -> Philox {
        Philox { key: self, next: 0, words: [0; 4], left: 0 }
    }
}

/// Constant that is mixed into the seed to derive a child key, so that the derivation does not
/// reuse random words of the parent key.
const CHILD_KEY_CONSTANT: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequential random number generator for the stream of an [`RngKey`].
///
/// ```
/// use cortado::op::RngKey;
/// use rand_core::Rng;
///
/// let key = RngKey::new(3);
/// let mut rng = key.rng();
/// assert_eq!([(); 4].map(|()| rng.next_u32()), key.words(0));
/// ```
#[derive(Clone, Debug)]
pub struct Philox {
    key: RngKey,
    next: u64,
    words: [u32; 4],
    left: usize,
}

impl TryRng for Philox {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        if self.left == 0 {
            self.words = self.key.words(self.next);
            self.next = self.next.wrapping_add(1);
            self.left = 4;
        }
        self.left -= 1;
        Ok(self.words[3 - self.left])
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low_bits = u64::from(self.try_next_u32()?);
        Ok(u64::from(self.try_next_u32()?) << 32 | low_bits)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.try_next_u32()?.to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

fn low_word(word: u64) -> u32 {
    word as u32
}

fn high_word(word: u64) -> u32 {
    (word >> 32) as u32
}

fn key(seed: u64) -> [u32; 2] {
    [low_word(seed), high_word(seed)]
}

/// Applies ten rounds of the Philox4x32 bijection to `counter`.
#[inline(always)]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        let first_product = u64::from(counter[0]) * 0xd251_1f53;
        let second_product = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [
            high_word(second_product) ^ counter[1] ^ key[0],
            low_word(second_product),
            high_word(first_product) ^ counter[3] ^ key[1],
            low_word(first_product),
        ];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known-answer test with the vectors `philox4x32 10` in the file `kat_vectors` of the
    /// Random123 distribution.
    #[test]
    fn philox_words_match_the_known_answers_of_random123() {
        let zero = philox([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = philox(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
