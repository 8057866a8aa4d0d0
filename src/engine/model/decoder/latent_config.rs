//! Configuration of multi-head latent attention.

use super::rope_tables;
use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;

/// Defaults of a family with latent attention, and what it does with positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatentKeys {
    /// Default of `q_lora_rank`; null is none.
    pub q_rank: Option<u64>,
    /// Default of `kv_lora_rank`.
    pub kv_rank: u64,
    /// Default of `qk_nope_head_dim`.
    pub nope_dim: u64,
    /// Default of `qk_rope_head_dim`.
    pub rope_dim: u64,
    /// Default of `v_head_dim`; `None` for hidden ÷ heads.
    pub values: Option<u64>,
    /// Rotation; `None` for that of the key `rope_interleave`.
    pub rotation: Option<LatentRotation>,
    /// Key by which the rotary tables know the elements that RoPE rotates.
    pub table: TableWidth,
}

/// Width of the rotary tables of latent attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableWidth {
    /// `head_dim`, which is that of the rotated elements.
    HeadDim,
    /// The rotated elements, whatever `head_dim` says (DeepSeek-V3.2).
    RopeDim,
    /// `partial_rotary_factor` of a whole head, which only scaled tables read (Mistral 4).
    PartOfHead,
}

impl LatentKeys {
    /// Those of DeepSeek-V3.
    pub const DEEPSEEK_V3: Self = Self {
        q_rank: Some(1536),
        kv_rank: 512,
        nope_dim: 128,
        rope_dim: 64,
        values: Some(128),
        rotation: None,
        table: TableWidth::HeadDim,
    };
}

/// Rotation of the elements of each head that have positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatentRotation {
    /// Alternating elements make pairs.
    Pairs,
    /// Both halves make pairs, as in Llama.
    Halves,
    /// Alternating elements are complex numbers.
    Complex,
    /// None: attention has no positions (Kimi Linear).
    Never,
}

/// Sizes of latent attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatentConfig {
    /// Elements of the queries' latent, if they have one.
    pub(super) q_rank: Option<u64>,
    /// Elements of the latent of keys and values.
    pub(super) kv_rank: u64,
    /// Elements of a query's or key's head that RoPE does not rotate.
    pub(super) nope_dim: u64,
    /// Elements that RoPE rotates.
    pub(super) rope_dim: u64,
    /// Elements of a value's head.
    pub(super) values: u64,
    pub(super) rotation: LatentRotation,
}

impl LatentConfig {
    /// Elements of a head that RoPE rotates.
    pub(crate) const fn rope_dim(&self) -> u64 {
        self.rope_dim
    }

    /// Elements of a head of queries or keys.
    pub(super) const fn width(&self) -> u64 {
        self.nope_dim + self.rope_dim
    }

    /// Reads the sizes in a decoder of `hidden` elements and `heads` heads.
    pub(super) fn read(s: &Section, keys: &LatentKeys, [hidden, heads]: [u64; 2]) -> Result<Self, ModelError> {
        let size = |name: &str, default: u64| s.size_of_class(name, default, limits::HEAD_DIM);
        let q_rank = match s.has("q_lora_rank") {
            true => s.optional_size("q_lora_rank", limits::WIDTH)?,
            false => keys.q_rank,
        };
        let rotation = match keys.rotation {
            Some(rotation) => rotation,
            None if s.flag("rope_interleave", !s.has("rope_interleave"))? => LatentRotation::Pairs,
            None => LatentRotation::Halves,
        };
        let read = Self {
            q_rank,
            kv_rank: s.size_of_class("kv_lora_rank", keys.kv_rank, limits::WIDTH)?,
            nope_dim: size("qk_nope_head_dim", keys.nope_dim)?,
            rope_dim: size("qk_rope_head_dim", keys.rope_dim)?,
            values: size("v_head_dim", keys.values.unwrap_or(hidden / heads).max(1))?,
            rotation,
        };
        read.check(s)?;
        match keys.table {
            TableWidth::HeadDim => {
                let head_dim = s.optional_size("head_dim", limits::HEAD_DIM)?.unwrap_or(read.rope_dim);
                s.equal(("head_dim", head_dim), ("qk_rope_head_dim", read.rope_dim))?;
                rotates_heads_of_the_table(s)?;
            }
            TableWidth::RopeDim => rotates_heads_of_the_table(s)?,
            TableWidth::PartOfHead => rope_tables::rotates_part(s, read.rope_dim, read.width())?,
        }
        Ok(read)
    }

    /// Refuses heads that fused attention does not take in half precision.
    fn check(&self, s: &Section) -> Result<(), ModelError> {
        let widths = [
            ("qk_nope_head_dim + qk_rope_head_dim", self.width()),
            ("v_head_dim", self.values),
        ];
        for (name, width) in widths {
            if width % 8 != 0 {
                return Err(s.wrong(name, &width.into(), "a multiple of 8: other widths are not simulated"));
            }
        }
        if !self.rope_dim.is_multiple_of(2) {
            return Err(s.wrong("qk_rope_head_dim", &self.rope_dim.into(), "an even number, of pairs"));
        }
        Ok(())
    }
}

/// Refuses tables for another number of elements than attention rotates.
fn rotates_heads_of_the_table(s: &Section) -> Result<(), ModelError> {
    rope_tables::rotates_whole_heads(s)?;
    rope_tables::has_factor(s)
}
