//! Ids and attention masks (`transformers/masking_utils.py`).

use super::mask_rule::{Positions, Rule};
use crate::dtype::DType;
use crate::setup::Attention;
use crate::tape::{Mask, Tape, Tensor};

/// Makes a tensor of ids outside the graph.
pub fn ids(t: &Tape, shape: &[u64], name: &'static str) -> Tensor {
    t.empty(shape, DType::I64, name)
}

/// Positions that a decoder's block may attend to. Ids of image blocks are [batch, seq]; positions of one image block
/// see each other both ways unless the id is negative.
#[derive(Clone, Copy)]
pub enum Pattern<'a> {
    /// Positions up to the query's own.
    Causal,
    /// Positions up to the query's own within a window of this many.
    Sliding(u64),
    /// Positions up to the query's own within its chunk of this many.
    Chunked(u64),
    /// Positions up to the query's own, and its image block.
    Blocks(&'a Tensor),
    /// Positions up to the query's own within the window, and its image block.
    SlidingOrBlocks(&'a Tensor),
    /// Positions up to the query's own and its image block, all within the window (Gemma 3).
    BlocksWithinWindow(&'a Tensor),
}

impl<'a> Pattern<'a> {
    fn rule(self) -> Rule<'a> {
        use Rule::{And, Causal, Or, SameBlock, Window};
        match self {
            Self::Causal | Self::Chunked(_) => Causal,
            Self::Sliding(_) => And(vec![Window, Causal]),
            Self::Blocks(ids) => Or(vec![Causal, SameBlock(ids)]),
            Self::SlidingOrBlocks(ids) => Or(vec![And(vec![Window, Causal]), SameBlock(ids)]),
            Self::BlocksWithinWindow(ids) => And(vec![Or(vec![Causal, SameBlock(ids)]), Window]),
        }
    }

    /// Returns true if SDPA's own causal mask can replace this one, once nothing is padded.
    fn may_be_skipped(self, seq: u64) -> bool {
        match self {
            Self::Causal => true,
            Self::Sliding(window) | Self::Chunked(window) => seq < window,
            _ => false,
        }
    }
}

/// Positions 0, 1, … of every sample, [1, seq], for embeddings [batch, seq, hidden].
pub fn position_ids(t: &Tape, embeds: &Tensor) -> Tensor {
    let arange = ids(t, &[embeds.size(1)], "arange");
    let shifted = t.compute(&arange, arange.dtype(), "position_ids");
    drop(arange);
    t.unsqueeze(&shifted, 0)
}

/// `create_position_ids_from_input_ids`, [batch, seq].
pub fn counted_positions(t: &Tape, ids: &Tensor) -> Tensor {
    let mask = {
        let is_token = t.compute(ids, DType::Bool, "tokens that are not padding");
        t.compute(&is_token, DType::I32, "mask")
    };
    let in_i32 = |x: &Tensor, name| t.compute(x, DType::I32, name);
    let mut incremental = t.running_sum(&mask);
    incremental = in_i32(&incremental, "type_as");
    incremental = in_i32(&incremental, "plus the past");
    incremental = in_i32(&incremental, "times the mask");
    let wide = t.compute(&incremental, DType::I64, "long");
    let positions = t.compute(&wide, DType::I64, "position ids");
    drop((wide, incremental, mask));
    positions
}

/// Mask of a decoder's blocks, for samples with a padding mask, or for samples packed into one row at the positions
/// `packed`.
pub fn text_mask(
    t: &Tape,
    attn: Attention,
    embeds: &Tensor,
    packed: Option<&Tensor>,
    pattern: Pattern<'_>,
) -> Option<Mask> {
    match packed {
        Some(positions) => Some(packed_mask(t, attn, embeds, positions, pattern)),
        None => pattern_mask(t, attn, embeds, pattern),
    }
}

/// `create_causal_mask`: [`pattern_mask`] of positions up to the query's own. Without padding, SDPA needs none.
pub fn causal_mask(t: &Tape, attn: Attention, embeds: &Tensor) -> Option<Mask> {
    pattern_mask(t, attn, embeds, Pattern::Causal)
}

/// `create_causal_mask` and `create_sliding_window_causal_mask`, which are given a padding mask. SDPA gets booleans of [batch, 1,
/// seq, seq], or none if nothing is padded and its own causal mask suffices; eager attention gets a bias of that shape in the
/// type of the embeddings, which are [batch, seq, hidden]; FlashAttention handles causality and windows itself, and needs none.
pub fn pattern_mask(t: &Tape, attn: Attention, embeds: &Tensor, pattern: Pattern<'_>) -> Option<Mask> {
    let [batch, seq] = [embeds.size(0), embeds.size(1)];
    let is_skipped = attn == Attention::Sdpa && pattern.may_be_skipped(seq);
    // In a generation the padding mask covers the cached positions too. They are left out where a mask is made from it: that
    // mask is simulated for the new tokens only.
    let cached = if is_skipped { t.cached_positions() } else { 0 };
    let padding = padding_mask(t, batch, seq + cached);
    let before = matches!(pattern, Pattern::Chunked(_)).then(|| left_padding(t, &padding));
    if attn == Attention::FlashAttention2 {
        drop(t.empty([], DType::Bool, "all"));
        return None;
    }
    if is_skipped {
        all_true(t, &padding);
        if !t.is_padded() {
            return None;
        }
        // Checks if all padding lies behind the queries, where SDPA's own mask would hide it: so only with a static cache.
        all_true(t, &padding);
    }
    let at = Positions {
        batch,
        seq,
        vmap: matches!(pattern, Pattern::BlocksWithinWindow(_)),
    };
    let rule = match &before {
        Some(before) => Rule::And(vec![Rule::SameChunk(before), pattern.rule()]),
        None => pattern.rule(),
    };
    let allowed = allowed_positions(t, at, rule, Some(&padding));
    Some(as_mask(t, attn, allowed, embeds))
}

/// Mask of a pattern for a model that asks for one even if SDPA needs none (`allow_is_causal_skip=False`).
pub fn made_mask(t: &Tape, attn: Attention, embeds: &Tensor, pattern: Pattern<'_>) -> Mask {
    let [batch, seq] = [embeds.size(0), embeds.size(1)];
    let padding = padding_mask(t, batch, seq);
    let at = Positions {
        batch,
        seq,
        vmap: false,
    };
    let allowed = allowed_positions(t, at, pattern.rule(), Some(&padding));
    as_mask(t, attn, allowed, embeds)
}

/// Number of tokens of padding before each sample, [batch].
fn left_padding(t: &Tape, padding: &Tensor) -> Tensor {
    let none_yet = {
        let counts = t.running_sum(padding);
        let zeros = t.compute(padding, DType::Bool, "zeros");
        let none_yet = t.compute(padding, DType::Bool, "nothing counted");
        drop((counts, zeros));
        none_yet
    };
    t.count(&none_yet, &[1])
}

/// `create_bidirectional_mask`, which is given a padding mask: a mask if something is padded. FlashAttention never gets one.
pub fn bidirectional_mask(t: &Tape, attn: Attention, embeds: &Tensor) -> Option<Mask> {
    let [batch, seq] = [embeds.size(0), embeds.size(1)];
    let padding = padding_mask(t, batch, seq);
    drop(t.all(&padding));
    if attn == Attention::FlashAttention2 || !t.is_padded() {
        return None;
    }
    let at = Positions {
        batch,
        seq,
        vmap: false,
    };
    let allowed = allowed_positions(t, at, Rule::Any, Some(&padding));
    Some(as_mask(t, attn, allowed, embeds))
}

/// `create_bidirectional_mask` for patches of images: `valid`, [images, patches], is true for those that are not padding, and
/// `full` tells that all are valid, so that no mask is made.
pub fn patch_mask(t: &Tape, attn: Attention, embeds: &Tensor, valid: &Tensor, full: bool) -> Option<Mask> {
    drop(t.all(valid));
    if full || attn == Attention::FlashAttention2 {
        return None;
    }
    let at = Positions {
        batch: embeds.size(0),
        seq: embeds.size(1),
        vmap: false,
    };
    let allowed = allowed_positions(t, at, Rule::Any, Some(valid));
    Some(as_mask(t, attn, allowed, embeds))
}

/// `create_recurrent_attention_mask`: the padding mask [batch, seq] if something is padded.
pub fn recurrent_mask(t: &Tape, padding: &Tensor) -> Option<Tensor> {
    if padding.size(1) == 1 {
        return None;
    }
    let marked = t.compute(padding, DType::Bool, "comparison");
    let all = t.all(&marked);
    drop(marked);
    drop(all);
    t.is_padded().then(|| padding.clone())
}

/// Mask of samples packed into one row, separated by their `positions` [1, seq]: there is no padding, and always a
/// mask.
fn packed_mask(t: &Tape, attn: Attention, embeds: &Tensor, positions: &Tensor, pattern: Pattern<'_>) -> Mask {
    let samples = packed_samples(t, positions);
    let at = Positions {
        batch: 1,
        seq: embeds.size(1),
        vmap: false,
    };
    let rule = Rule::And(vec![pattern.rule(), Rule::SameSample(&samples)]);
    let allowed = allowed_positions(t, at, rule, None);
    as_mask(t, attn, allowed, embeds)
}

/// `find_packed_sequence_indices`: the index of each position's sample, [1, seq].
fn packed_samples(t: &Tape, positions: &Tensor) -> Tensor {
    let seq = positions.size(1);
    let ids = |n: u64, name| t.empty([1, n], DType::I64, name);
    let before_first = ids(1, "position before the first");
    let differences = {
        let prepended = ids(seq + 1, "positions with one before");
        let differences = ids(seq, "differences of positions");
        drop(prepended);
        differences
    };
    let starts = t.compute(&differences, DType::Bool, "starts of samples");
    let samples = t.cumsum_ids(&starts, DType::I64);
    drop(starts);
    let none = t.empty([1], DType::Bool, "comparison");
    drop(t.empty([], DType::Bool, "all"));
    drop((none, differences, before_first));
    samples
}

fn as_mask(t: &Tape, attn: Attention, allowed: Tensor, embeds: &Tensor) -> Mask {
    match attn {
        Attention::Sdpa | Attention::FlashAttention2 => Mask::Bool(allowed),
        Attention::Eager => Mask::Bias(as_bias(t, &allowed, embeds.dtype())),
    }
}

/// `_preprocess_mask_arguments`: the padding mask as booleans.
pub fn padding_mask(t: &Tape, batch: u64, seq: u64) -> Tensor {
    t.empty([batch, seq], DType::Bool, "padding mask")
}

/// `fast_all`: compares the sum of the mask with its size.
fn all_true(t: &Tape, mask: &Tensor) {
    let sum = t.empty([], DType::I64, "sum");
    drop(t.compute(mask, DType::I64, "mask as integers"));
    let equal = t.empty([], DType::Bool, "comparison");
    drop((sum, equal));
}

/// `sdpa_mask`: booleans of [batch, 1, seq, seq], true for keys that may be attended to.
fn allowed_positions(t: &Tape, at: Positions, rule: Rule<'_>, padding: Option<&Tensor>) -> Tensor {
    let arange = |n: u64, name| t.empty([n], DType::I64, name);
    let batches = arange(at.batch, "batch positions");
    let heads = arange(1, "head positions");
    let shifted = |name| {
        let raw = arange(at.seq, name);
        let moved = arange(at.seq, name);
        drop(raw);
        moved
    };
    let queries = shifted("query positions");
    let keys = shifted("key positions");
    let rule = match padding {
        Some(padding) => Rule::And(vec![rule, Rule::Marked(padding)]),
        None => rule,
    };
    let allowed = rule.evaluate(t, at);
    drop((batches, heads, queries, keys));
    allowed
}

/// `torch.where(mask, 0, min)`.
fn as_bias(t: &Tape, allowed: &Tensor, dtype: DType) -> Tensor {
    let zero = t.empty([], dtype, "0");
    let lowest = t.empty([], dtype, "lowest value");
    let bias = t.empty(*allowed.shape(), dtype, "additive mask");
    drop((lowest, zero));
    bias
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Gpu;

    /// Bytes requested for the mask of one sample of 777 positions for eager attention in fp32.
    fn allocations(pattern: impl Fn(&Tensor) -> Pattern<'_>) -> Vec<u64> {
        let tape = Tape::new(Gpu::H200);
        let embeds = tape.empty([1, 777, 2560], DType::F32, "embeddings");
        let blocks = ids(&tape, &[1, 777], "blocks");
        drop(pattern_mask(&tape, Attention::Eager, &embeds, pattern(&blocks)));
        drop((embeds, blocks));
        tape.finish().allocations.iter().skip(2).map(|b| b.bytes).collect()
    }

    const SQUARE: u64 = 777 * 777;
    const IDS: u64 = 777 * 8;

    /// Gemma 3's mask of its global blocks, from an allocator trace.
    #[test]
    fn blocks_that_see_themselves_cost_what_the_trace_says() {
        let rule = [
            1, 1, SQUARE, SQUARE, IDS, IDS, IDS, IDS, SQUARE, 777, SQUARE, SQUARE, SQUARE, IDS, 777, SQUARE,
        ];
        let positions = [777, 8, 8, IDS, IDS, IDS, IDS];
        let expected: Vec<u64> = [&positions[..], &rule, &[4, 4, 4 * SQUARE]].concat();
        assert_eq!(allocations(|blocks| Pattern::Blocks(blocks)), expected);
    }

    /// Gemma 3's mask of its sliding blocks, evaluated through `vmap`, from that trace.
    #[test]
    fn blocks_within_a_window_cost_what_the_trace_says() {
        let rule = [
            777, 777, 777, SQUARE, SQUARE, IDS, IDS, IDS, IDS, SQUARE, 777, SQUARE, SQUARE, SQUARE, IDS, SQUARE,
            SQUARE, SQUARE, IDS, 777, SQUARE,
        ];
        let positions = [777, 8, 8, IDS, IDS, IDS, IDS];
        let expected: Vec<u64> = [&positions[..], &rule, &[4, 4, 4 * SQUARE]].concat();
        assert_eq!(allocations(|blocks| Pattern::BlocksWithinWindow(blocks)), expected);
    }

    #[test]
    fn a_padded_batch_needs_a_mask() {
        let tape = Tape::new(Gpu::H200);
        let embeds = tape.empty([2, 100, 64], DType::Bf16, "embeddings");
        assert!(causal_mask(&tape, Attention::Sdpa, &embeds).is_none());
        tape.set_padded(true);
        let Some(Mask::Bool(mask)) = causal_mask(&tape, Attention::Sdpa, &embeds) else {
            panic!("padding must be masked")
        };
        assert_eq!(mask.shape()[..], [2, 1, 100, 100]);
    }

    #[test]
    fn packed_samples_need_a_mask_of_the_whole_row() {
        let tape = Tape::new(Gpu::H200);
        let embeds = tape.empty([1, 100, 64], DType::Bf16, "embeddings");
        let positions = ids(&tape, &[1, 100], "positions");
        let mask = packed_mask(&tape, Attention::Eager, &embeds, &positions, Pattern::Causal);
        let Mask::Bias(bias) = mask else {
            panic!("eager attention adds its mask")
        };
        assert_eq!((&bias.shape()[..], bias.dtype()), (&[1, 1, 100, 100][..], DType::Bf16));
    }

    #[test]
    fn sdpa_needs_no_mask_until_the_window_is_shorter_than_the_sample() {
        let tape = Tape::new(Gpu::H200);
        let embeds = tape.empty([1, 777, 64], DType::Bf16, "embeddings");
        let mask = |window| pattern_mask(&tape, Attention::Sdpa, &embeds, Pattern::Sliding(window));
        assert!(mask(778).is_none());
        assert!(matches!(mask(777), Some(Mask::Bool(_))));
    }
}
