//! Where plug-ins take chance from.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};
use wasmtime_wasi::WasiCtxBuilder;

/// Source of random numbers for plug-ins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Randomness {
    /// The machine's.
    #[default]
    System,
    /// Drawn from this seed, so that a run can be repeated. Never where secrets are made.
    Seeded(u64),
}

impl Randomness {
    /// Gives a store its random numbers. Stores of other plug-ins, and later stores of the same one, get others.
    pub(crate) fn equip(self, wasi: &mut WasiCtxBuilder, plugin: &str, start: u32) {
        let Self::Seeded(seed) = self else { return };
        let draw = |purpose: &str| -> [u8; 32] {
            let mut hash = Sha256::new();
            hash.update(seed.to_le_bytes());
            hash.update(start.to_le_bytes());
            hash.update(purpose);
            hash.update(plugin);
            hash.finalize().into()
        };
        let number: [u8; 16] = draw("seed").first_chunk().copied().unwrap_or_default();
        wasi.secure_random(ChaCha12Rng::from_seed(draw("secure")))
            .insecure_random(ChaCha12Rng::from_seed(draw("insecure")))
            .insecure_random_seed(u128::from_le_bytes(number));
    }
}
