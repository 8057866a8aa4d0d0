//! Guesses the tensor behind a failed request from its size.

use super::{Action, AttentionShape, Cause, Confidence, Context, Finding, LogitsShape};
use crate::amount::Amount;
use crate::oom::{OomMessage, Site};
use vramscope_engine::allocator::{LARGE_ROUNDING, LARGE_SEGMENT, segment_size};
use vramscope_engine::report::{LiveTensor, Timeline};
use vramscope_engine::units::Bytes;

/// Head counts of published models, the most common first.
const HEADS: [u64; 20] = [
    32, 16, 12, 40, 28, 64, 24, 20, 8, 14, 25, 48, 52, 56, 71, 72, 80, 96, 112, 128,
];
/// Vocabulary sizes of published models: GPT-2, Llama 1 and 2, LLaVA, Llama 3, Qwen 2, Gemma, PaliGemma, Mistral Nemo,
/// Phi-3, SmolLM 2, InternVL, Llama 4. The last two are close to powers of two, a size that many other tensors have.
const VOCABULARIES: [u64; 14] = [
    32_000, 128_256, 151_936, 152_064, 50_257, 32_064, 256_000, 257_216, 49_152, 92_553, 100_352, 202_048, 262_208,
    131_072,
];
/// Sequence lengths that are not round numbers: patches of 224, 336 and 384 pixels, with and without a class token, and
/// VideoMAE's tubes.
const IMAGE_LENGTHS: [u64; 8] = [197, 257, 576, 577, 729, 730, 1025, 1568];
/// Smallest request to explain by its shape; smaller sizes match too many tensors.
const SMALLEST: Bytes = Bytes::mib(64);
/// Largest number of shapes reported.
const KEPT: usize = 5;
/// Oddity score above which a match is probably a coincidence.
const ODDEST: u64 = 7;

/// Findings about tensors of the request's size: those of the simulated step, or else common shapes.
pub fn findings(message: &OomMessage, context: &Context) -> Vec<Finding> {
    let Some(request) = message.request else {
        return Vec::new();
    };
    let Some((least, most)) = tensor_bytes(request) else {
        return Vec::new();
    };
    let bytes = request.bytes;
    if let Some(report) = context.report {
        let tensors = of_size(&report.timeline, least, most, KEPT);
        if !tensors.is_empty() {
            let steps = steps_for(&tensors);
            let cause = Cause::Tensors {
                request: bytes,
                tensors,
            };
            return vec![Finding::new(Confidence::Likely, cause, &steps)];
        }
    }
    if bytes < SMALLEST && message.site.is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let confidence = |site: Site| {
        if message.site == Some(site) {
            Confidence::Likely
        } else {
            Confidence::Possible
        }
    };
    let shapes = attention(least, most);
    let elsewhere = |site: Site| {
        message
            .site
            .is_some_and(|known| known != site && known != Site::Forward && known != Site::Backward)
    };
    if !shapes.is_empty() && !elsewhere(Site::Attention) {
        let cause = Cause::AttentionMatrix { request: bytes, shapes };
        found.push(Finding::new(
            confidence(Site::Attention),
            cause,
            &[Action::FusedAttention, Action::Shorter, Action::NameSetup],
        ));
    }
    let shapes = logits(least, most);
    if !shapes.is_empty() && !elsewhere(Site::Loss) {
        let cause = Cause::Logits { request: bytes, shapes };
        found.push(Finding::new(
            confidence(Site::Loss),
            cause,
            &[Action::FusedLoss, Action::Shorter, Action::NameSetup],
        ));
    }
    found
}

/// Smallest and largest tensor, in bytes, that makes the allocator ask the driver for `request`. `None` for requests of
/// 20 MiB and less: such segments are shared by small tensors, so their size says nothing about a tensor.
fn tensor_bytes(request: Amount) -> Option<(u64, u64)> {
    if request.bytes.get() <= LARGE_SEGMENT {
        return None;
    }
    let least = request.least().get().saturating_sub(LARGE_ROUNDING) + 1;
    Some((least, request.most().get()))
}

/// Returns true if a tensor of `bytes` leads to a segment between the two sizes.
fn fits(bytes: u64, least: u64, most: u64) -> bool {
    (least + LARGE_ROUNDING - 1..=most).contains(&segment_size(bytes))
}

/// Attention matrices between two sizes, the most common first.
fn attention(least: u64, most: u64) -> Vec<AttentionShape> {
    let mut shapes: Vec<(u64, AttentionShape)> = Vec::new();
    for (rank, &heads) in HEADS.iter().enumerate() {
        for batch in 1..=64u64 {
            for width in [2, 4] {
                let unit = batch * heads * width;
                for length in round_lengths((least / unit).isqrt(), (most / unit).isqrt()) {
                    let oddness = rank as u64 / 3 + batch_oddness(batch) + length_oddness(length);
                    if fits(unit * length * length, least, most) && oddness <= ODDEST {
                        let shape = AttentionShape {
                            batch,
                            heads,
                            length,
                            width,
                        };
                        shapes.push((oddness, shape));
                    }
                }
            }
        }
    }
    shapes.sort_by_key(|&(oddness, shape)| (oddness, shape.batch, shape.heads));
    shapes.into_iter().map(|(_, shape)| shape).take(KEPT).collect()
}

/// Logits tensors between two sizes, the most common first.
fn logits(least: u64, most: u64) -> Vec<LogitsShape> {
    let mut shapes: Vec<(u64, LogitsShape)> = Vec::new();
    for (rank, &vocab) in VOCABULARIES.iter().enumerate() {
        for width in [4, 2] {
            let unit = vocab * width;
            // Some losses drop the last position, so lengths of one less also match.
            for tokens in round_lengths(least / unit, most / unit + 1) {
                let samples = tokens / (1 << tokens.trailing_zeros());
                let oddness =
                    rank as u64 / 3 + u64::from(samples.ilog2()) + length_oddness(tokens) + u64::from(width == 2);
                if fits(unit * tokens, least, most) && oddness <= ODDEST - 2 {
                    shapes.push((oddness, LogitsShape { tokens, vocab, width }));
                }
            }
        }
    }
    shapes.sort_by_key(|&(oddness, shape)| (oddness, shape.vocab));
    shapes.into_iter().map(|(_, shape)| shape).take(KEPT).collect()
}

/// A few multiples of 64 and lengths of images between two bounds.
fn round_lengths(least: u64, most: u64) -> impl Iterator<Item = u64> {
    let first = least.next_multiple_of(64).max(64);
    let images = IMAGE_LENGTHS
        .into_iter()
        .filter(move |length| (least..=most).contains(length) && length % 64 != 0);
    (0..8)
        .map(move |i| first + 64 * i)
        .take_while(move |&length| length <= most)
        .chain(images)
}

const fn length_oddness(length: u64) -> u64 {
    match length.trailing_zeros() {
        10.. => 0,
        9 => 1,
        8 => 2,
        7 => 4,
        6 => 6,
        _ => 2,
    }
}

const fn batch_oddness(batch: u64) -> u64 {
    if batch.is_power_of_two() {
        batch.ilog2() as u64
    } else {
        3 + batch.ilog2() as u64
    }
}

fn steps_for(tensors: &[LiveTensor]) -> Vec<Action> {
    let square = tensors.iter().any(|t| matches!(&t.shape[..], [_, .., a, b] if a == b));
    let head = tensors
        .iter()
        .any(|t| t.component == vramscope_engine::tape::Component::Head);
    let mut steps = Vec::new();
    steps.extend(square.then_some(Action::FusedAttention));
    steps.extend(head.then_some(Action::FusedLoss));
    steps.extend([Action::Checkpoint, Action::SmallerBatch, Action::Shorter]);
    steps
}

/// Tensors of the simulated step for which the allocator would ask the driver for a segment between the two sizes, each
/// name once, at most `kept` of them.
fn of_size(timeline: &Timeline, least: u64, most: u64, kept: usize) -> Vec<LiveTensor> {
    let mut found: Vec<LiveTensor> = Vec::new();
    for tensor in timeline.born(|bytes: Bytes| fits(bytes.get(), least, most)) {
        if found.len() == kept {
            break;
        }
        if !found
            .iter()
            .any(|known| known.name == tensor.name && known.shape == tensor.shape)
        {
            found.push(tensor);
        }
    }
    found
}
