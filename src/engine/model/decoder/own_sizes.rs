//! Sizes that the blocks of a few families have beside those of all decoders.

use crate::model::ModelError;
use crate::model::config::limits;
use crate::model::config::section::Section;

/// Sizes of a family's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnSizes {
    /// None.
    Usual,
    /// Laguna's.
    Laguna {
        /// Query heads of each block.
        heads: Vec<u64>,
        /// True if a gate of attention multiplies a whole head, false if an element.
        gates_heads: bool,
        /// True if the router's logits have a soft cap.
        caps_logits: bool,
    },
    /// Elements of a value's head (MiMo-V2-Flash).
    ValueHeads(u64),
    /// Keys that each query attends to at most (Doge).
    KeptKeys(u64),
    /// Indexers that choose the keys of latent attention (DeepSeek-V3.2).
    Indexers(Indexers),
    /// Indexers, and streams of the residual that blocks mix (HY-4).
    Streams(Indexers, u64),
    /// Experts that pass tokens on as they are, and elements inside the MLPs beside experts (LongCat-Flash).
    Shortcut {
        /// Experts that pass tokens on.
        zero_experts: u64,
        /// Elements inside an MLP.
        intermediate: u64,
    },
    /// Indexers, and the rank of the gates of norms, beside gates of attention (A.X-K2).
    GatedNorms(Indexers, u64),
}

/// Indexers of a decoder's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Indexers {
    /// Heads of an indexer.
    pub heads: u64,
    /// Elements of one of its heads.
    pub width: u64,
    /// Keys that each query attends to at most.
    pub chosen: u64,
    /// True if alternating elements of its heads make pairs, false if halves do.
    pub rotates_pairs: bool,
    /// True if RoPE rotates the last elements of a head, and weights are scaled in place of scores (HY-4).
    pub rotates_last: bool,
    /// For each block, true if it takes the choice of the block before it; `None` in a family whose blocks pass none on.
    pub takes_choice: Option<Vec<bool>>,
}

impl Indexers {
    /// Reads the indexers of a family with these defaults of their heads, their elements and the keys that they choose, for
    /// attention of which `rope_dim` elements of a head have positions.
    pub fn read(s: &Section, [heads, width, chosen]: [u64; 3], rope_dim: u64) -> Result<Self, ModelError> {
        let read = Self {
            heads: s.size_or("index_n_heads", heads, limits::HEADS)?,
            width: s.size_or("index_head_dim", width, limits::HEAD_DIM)?,
            chosen: s.size_or("index_topk", chosen, limits::POSITIONS)?,
            rotates_pairs: false,
            rotates_last: false,
            takes_choice: None,
        };
        if read.width < rope_dim {
            let allowed = format!("qk_rope_head_dim, {rope_dim}, or more");
            return Err(s.wrong("index_head_dim", &read.width.into(), &allowed));
        }
        Ok(read)
    }
}

impl OwnSizes {
    /// Number that blocks of one kind share, for layer deduplication.
    pub fn kind(&self, index: usize) -> u64 {
        match self {
            Self::Laguna { heads, .. } => heads[index],
            _ => 0,
        }
    }

    /// Returns true if blocks hand a choice of keys on to the next.
    pub fn passes_choice(&self) -> bool {
        self.indexers().is_some_and(|indexers| indexers.takes_choice.is_some())
    }

    /// Indexers of the blocks, if they have some.
    pub fn indexers(&self) -> Option<&Indexers> {
        match self {
            Self::Indexers(indexers) | Self::Streams(indexers, _) | Self::GatedNorms(indexers, _) => Some(indexers),
            _ => None,
        }
    }

    /// Rank of the gates of norms, if they have some.
    pub fn gate_rank(&self) -> Option<u64> {
        match self {
            Self::GatedNorms(_, rank) => Some(*rank),
            _ => None,
        }
    }

    /// Streams of the residual that blocks mix; `None` where there is one.
    pub fn streams(&self) -> Option<u64> {
        match self {
            Self::Streams(_, streams) => Some(*streams),
            _ => None,
        }
    }
}
