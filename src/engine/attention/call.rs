//! One attention call: its sizes, its algorithms, and the calls that are refused.

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::tape::Gpu;

/// A way to compute attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// Scores, softmax and product as separate tensors.
    Standard,
    /// FlashAttention 2, as PyTorch ships it.
    Flash,
    /// xFormers' memory-efficient attention, as PyTorch ships it.
    Efficient,
    /// cuDNN's fused attention.
    Cudnn,
    /// Blocks of half a window of queries, each against the keys around it.
    Sliding,
    /// All scores, of which each query keeps the highest.
    TopK,
    /// A few queries at a time against all keys.
    Chunked,
}

impl Algorithm {
    /// All, in the order of a legend.
    pub const ALL: [Self; 7] = [
        Self::Standard,
        Self::Flash,
        Self::Efficient,
        Self::Cudnn,
        Self::Sliding,
        Self::TopK,
        Self::Chunked,
    ];

    /// The stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Flash => "flash",
            Self::Efficient => "efficient",
            Self::Cudnn => "cudnn",
            Self::Sliding => "sliding",
            Self::TopK => "topk",
            Self::Chunked => "chunked",
        }
    }
}

/// Passes of a training step that run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Forward without a graph.
    Forward,
    /// Forward and backward.
    Training,
}

/// Sizes of an attention call, except for its length, which is given apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// Samples.
    pub batch: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads, a divisor of `heads`.
    pub kv_heads: u64,
    /// Elements of one head.
    pub width: u64,
    /// Type of queries, keys and values.
    pub dtype: DType,
    /// True if queries see no keys after them.
    pub causal: bool,
    /// Sliding window: distance to the farthest key that a query sees, rounded to halves.
    pub window: u64,
    /// Top-k: percent of the keys that each query keeps.
    pub kept_percent: u64,
    /// Chunked: number of queries at a time.
    pub chunk: u64,
    /// Passes that run.
    pub pass: Pass,
}

/// Reason that a call cannot run: the value given and the values allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Limit on blocks of queries: each makes a dozen tensors.
const MOST_BLOCKS: u64 = 8192;

impl Call {
    /// Number of keys that each query keeps of `length`, at least one.
    pub fn kept(&self, length: u64) -> u64 {
        (length.saturating_mul(self.kept_percent) / 100).max(1)
    }

    /// Half a window: the queries of one block.
    pub fn half_window(&self) -> u64 {
        (self.window / 2).max(1)
    }

    /// Blocks of queries and the keys that each sees, as [queries, keys].
    pub fn blocks(&self, algorithm: Algorithm, length: u64) -> Vec<[u64; 2]> {
        match algorithm {
            Algorithm::Sliding => {
                let blocks = length.div_ceil(self.half_window());
                (0..blocks).map(|i| self.window_block(i, length)).collect()
            }
            Algorithm::Chunked => {
                let block = |begin: u64| {
                    let queries = self.chunk.min(length - begin);
                    [queries, if self.causal { begin + queries } else { length }]
                };
                (0..length.div_ceil(self.chunk))
                    .map(|i| block(i * self.chunk))
                    .collect()
            }
            _ => vec![[length, length]],
        }
    }

    /// Pairs of a query and a key that one head computes: the sum over [`Self::blocks`], or only the triangle if a
    /// fused kernel skips the part that a causal mask hides. Runs in constant time, and saturates.
    pub fn pairs(&self, algorithm: Algorithm, length: u64) -> u64 {
        let squared = u128::from(length) * u128::from(length);
        let triangle = u128::from(length) * (u128::from(length) + 1) / 2;
        let pairs = match algorithm {
            Algorithm::Flash | Algorithm::Cudnn if self.causal => triangle,
            Algorithm::Sliding => self.pairs_of_windows(length),
            Algorithm::Chunked if self.causal => {
                let chunk = u128::from(self.chunk.clamp(1, length.max(1)));
                let (whole, rest) = (u128::from(length) / chunk, u128::from(length) % chunk);
                // Chunk i of the whole chunks sees i · chunk keys; the rest sees all.
                (chunk * chunk).saturating_mul(whole * (whole + 1) / 2) + rest * u128::from(length)
            }
            _ => squared,
        };
        u64::try_from(pairs).unwrap_or(u64::MAX)
    }

    /// Sum over the windows' blocks. Blocks between the first and the last two see equally many keys.
    fn pairs_of_windows(&self, length: u64) -> u128 {
        let blocks = length.div_ceil(self.half_window());
        let of = |i: u64| {
            let [queries, keys] = self.window_block(i, length);
            u128::from(queries) * u128::from(keys)
        };
        let between = blocks.saturating_sub(3);
        let ends = [0, blocks.saturating_sub(2), blocks.saturating_sub(1)];
        let sum = |ends: &[u64]| ends.iter().map(|i| of(*i)).sum::<u128>();
        match blocks {
            0 => 0,
            1 => sum(&ends[..1]),
            2 => sum(&ends[1..]),
            _ => sum(&ends).saturating_add(u128::from(between).saturating_mul(of(1))),
        }
    }

    /// Queries of a block of half a window, and the keys that they see.
    fn window_block(&self, i: u64, length: u64) -> [u64; 2] {
        let half = self.half_window();
        let begin = i * half;
        let ahead = if self.causal { half } else { half.saturating_mul(2) };
        let keys = begin.saturating_add(ahead).min(length) - begin.saturating_sub(half);
        [half.min(length - begin), keys]
    }

    /// Refuses sizes that no tensor or no kernel can have.
    ///
    /// # Errors
    /// The message names the value, what is allowed, or the kernel that is missing.
    pub fn check(&self, algorithm: Algorithm, length: u64, gpu: &Gpu) -> Result<(), Refused> {
        let limits = [
            ("batch", self.batch, 65_536),
            ("heads", self.heads, 1024),
            ("kv_heads", self.kv_heads, 1024),
            ("head_dim", self.width, 1024),
            ("length", length, 1 << 22),
            ("window", self.window, 1 << 22),
            ("topk", self.kept_percent, 100),
            ("chunk", self.chunk, 1 << 22),
        ];
        for (name, value, most) in limits {
            if value == 0 || value > most {
                return Err(Refused(format!("`{name}` is {value}; it must be between 1 and {most}")));
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(Refused(format!(
                "`heads` is {}, which is no multiple of `kv_heads`, {}",
                self.heads, self.kv_heads
            )));
        }
        self.kernel_exists(algorithm, gpu)?;
        let block = match algorithm {
            Algorithm::Sliding => self.half_window(),
            Algorithm::Chunked => self.chunk,
            _ => length,
        };
        if length.div_ceil(block) > MOST_BLOCKS {
            return Err(Refused(format!(
                "{length} positions are more than {MOST_BLOCKS} blocks of {block}; raise `window` or `chunk`"
            )));
        }
        Ok(())
    }

    /// `check_*` of `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`.
    fn kernel_exists(&self, algorithm: Algorithm, gpu: &Gpu) -> Result<(), Refused> {
        let half = self.dtype != DType::F32;
        let why = match algorithm {
            Algorithm::Flash | Algorithm::Cudnn if !half => "runs in fp16 and bf16 only",
            Algorithm::Flash if gpu.capability.0 < 8 => "needs compute capability 8.0",
            Algorithm::Flash | Algorithm::Cudnn if self.width > 256 => "takes heads of at most 256 elements",
            Algorithm::Cudnn if gpu.capability.0 < 8 => "needs compute capability 8.0",
            Algorithm::Cudnn if !self.width.is_multiple_of(8) => "takes heads of a multiple of 8 elements",
            _ => return Ok(()),
        };
        Err(Refused(format!("{}: {why}", algorithm.name())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fused kernels that skip masked parts have no blocks to sum.
        #[test]
        fn pairs_are_those_of_all_blocks(
            length in 1_u64..700, window in 1_u64..900, chunk in 1_u64..900, causal: bool,
        ) {
            let call = Call {
                batch: 1,
                heads: 1,
                kv_heads: 1,
                width: 64,
                dtype: DType::Bf16,
                causal,
                window,
                kept_percent: 100,
                chunk,
                pass: Pass::Forward,
            };
            for algorithm in [Algorithm::Standard, Algorithm::TopK, Algorithm::Sliding, Algorithm::Chunked] {
                let summed: u64 = call.blocks(algorithm, length).iter().map(|[queries, keys]| queries * keys).sum();
                prop_assert_eq!(call.pairs(algorithm, length), summed, "{:?}", algorithm);
            }
        }
    }
}
