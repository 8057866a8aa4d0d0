//! Finds the tensor behind a failed request from its size, in the simulated step or in shapes of the model that a text names.

use super::model_shape::{ModelShape, fits, tensor_bytes};
use super::{Action, AttentionShape, Cause, Confidence, Context, Finding, LogitsShape};
use crate::oom::{OomMessage, Site};
use vramscope_engine::report::{LiveTensor, Timeline};
use vramscope_engine::units::Bytes;

/// Smallest request to explain by its shape; smaller sizes match too many tensors.
const SMALLEST: Bytes = Bytes::mib(64);

/// Largest number of shapes reported.
const KEPT: usize = 5;

/// Findings about tensors of the request's size: those of the simulated step, or else common shapes.
pub fn findings(message: &OomMessage, context: &Context, shape: Option<&ModelShape>) -> Vec<Finding> {
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
    // Heads and vocabularies of a model that nobody named prove nothing, and a fit elsewhere is a coincidence: something
    // always fits.
    let mut found = Vec::new();
    let Some(shape) = shape else { return found };
    if message.site == Some(Site::Attention) {
        let shapes = attention(shape, least, most);
        if !shapes.is_empty() {
            let cause = Cause::AttentionMatrix { request: bytes, shapes };
            let steps = [Action::FusedAttention, Action::Shorter, Action::NameSetup];
            found.push(Finding::new(Confidence::Likely, cause, &steps));
        }
    }
    if message.site == Some(Site::Loss) {
        let shapes = logits(shape, least, most);
        if !shapes.is_empty() {
            let cause = Cause::Logits { request: bytes, shapes };
            let steps = [Action::FusedLoss, Action::Shorter, Action::NameSetup];
            found.push(Finding::new(Confidence::Likely, cause, &steps));
        }
    }
    found
}

/// Attention matrices of a model between two sizes.
fn attention(shape: &ModelShape, least: u64, most: u64) -> Vec<AttentionShape> {
    let shapes = shape.attention(least, most).into_iter();
    let shapes = shapes.map(|(batch, length, width)| AttentionShape {
        batch,
        heads: shape.heads.unwrap_or_default(),
        length,
        width,
    });
    shapes.take(KEPT).collect()
}

/// Logits of a model between two sizes: in fp32, as the loss has them, or in 16 bits.
fn logits(shape: &ModelShape, least: u64, most: u64) -> Vec<LogitsShape> {
    let Some(vocab) = shape.vocab else { return Vec::new() };
    let of_width = |width: u64| {
        let tokens = (least / (vocab * width)).max(1)..=most / (vocab * width);
        // Rounding leaves a range of lengths; a round one is the likeliest.
        let fitting = tokens.filter(|tokens| fits(tokens * vocab * width, least, most));
        fitting
            .max_by_key(|tokens| tokens.trailing_zeros())
            .map(|tokens| LogitsShape { tokens, vocab, width })
    };
    [4, 2].into_iter().filter_map(of_width).collect()
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
