//! Says what of a watched run differs from its prediction, and why.

use vramscope_engine::units::Bytes;
use vramscope_time::Bound;

use super::Compared;
use crate::input::watched::Header;

/// Relative difference of bytes that is worth a sentence.
const BYTES: f64 = 0.01;
/// Relative difference of times that is worth a sentence; estimates are within it for most steps.
const TIME: f64 = 0.15;
/// Steps in a row whose memory has to grow before it is called a leak.
const GROWING: usize = 8;
/// Share of the reserved bytes, beyond the predicted, that fragmentation takes before it is worth a sentence.
const FRAGMENTED: f64 = 0.1;

/// Sentences on what differs, the most important first.
pub fn differs(header: &Header, compared: &[Compared], has_record: bool) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(
        header
            .notes
            .iter()
            .map(|note| format!("The prediction leaves out {note}: it is not simulated.")),
    );
    if header.gpus > 1 {
        out.push(format!(
            "The run has {} GPUs; the prediction is of one GPU without what its strategy adds or saves.",
            header.gpus
        ));
    }
    out.extend(growing(compared));
    let Some(last) = compared.iter().rev().find(|c| c.predicted.is_some()) else {
        return out;
    };
    out.extend(held(last));
    out.extend(fragmented(compared));
    out.extend(slower(compared, has_record));
    out.extend(lengths(compared));
    out
}

/// Memory that grows from step to step.
fn growing(compared: &[Compared]) -> Option<String> {
    let ends: Vec<u64> = compared.iter().skip(1).map(|c| c.step.end).collect();
    let last = ends.len().checked_sub(GROWING + 1).map(|from| &ends[from..])?;
    let each = last
        .windows(2)
        .map(|pair| pair[1].checked_sub(pair[0]).filter(|more| *more > 0));
    let each: Option<Vec<u64>> = each.collect();
    let mean = each?.iter().sum::<u64>() / GROWING as u64;
    Some(format!(
        "Memory at the end of a step grows by {} each step: something keeps tensors of every step, such as a list of \
         losses or outputs without .detach() or .item().",
        Bytes::new(mean)
    ))
}

/// Memory that is held from one step to the next.
fn held(last: &Compared) -> Option<String> {
    let predicted = last.predicted?;
    let of = |measured: u64, predicted: u64| measured as f64 / predicted.max(1) as f64 - 1.0;
    let (peak, end) = (of(last.step.peak, predicted.peak), of(last.step.end, predicted.end));
    let more = |measured: u64, predicted: u64| Bytes::new(measured.abs_diff(predicted));
    if peak.abs() <= BYTES && end.abs() <= BYTES {
        return None;
    }
    let kept = last.step.end.saturating_sub(predicted.end);
    if end > BYTES && last.step.peak.saturating_sub(predicted.peak).abs_diff(kept) < kept / 4 {
        return Some(format!(
            "{} more than predicted are held from one step to the next, and lie below the peak too: a second model, an \
             average of the weights, metrics or a batch that is kept.",
            Bytes::new(kept)
        ));
    }
    let side = if peak > 0.0 { "more" } else { "less" };
    (peak.abs() > BYTES).then(|| {
        format!(
            "The peak takes {} {side} than predicted. `vramscope record` shows each tensor of your own script; `vramscope \
             diagnose` reads a memory snapshot of the run.",
            more(last.step.peak, predicted.peak)
        )
    })
}

/// Reserved memory that no tensor fills.
fn fragmented(compared: &[Compared]) -> Option<String> {
    let last = compared.last()?;
    let predicted = compared.iter().filter_map(|c| c.predicted).map(|p| p.reserved).max()?;
    let beyond = last.step.reserved.saturating_sub(predicted);
    (beyond as f64 > FRAGMENTED * predicted as f64).then(|| {
        format!(
            "{} more than predicted are reserved: steps of different lengths, or work beside the step, fragment the \
             allocator. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True helps.",
            Bytes::new(beyond)
        )
    })
}

/// Steps that take longer, or less long, than predicted.
fn slower(compared: &[Compared], has_record: bool) -> Option<String> {
    let timed = compared
        .iter()
        .skip(1)
        .filter_map(|c| Some((c.step.ms, c.predicted?.time?)));
    let mut ratios: Vec<(f64, Bound)> = timed
        .map(|(ms, predicted)| (ms / predicted.ms.max(1e-9), predicted.bound))
        .collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let &(ratio, bound) = ratios.get(ratios.len() / 2)?;
    if (ratio - 1.0).abs() <= TIME {
        return None;
    }
    let (percent, side) = ((ratio - 1.0).abs() * 100.0, if ratio > 1.0 { "longer" } else { "less" });
    let why = match (bound, has_record) {
        (_, true) => {
            "The card's own record was given: data that comes late, other work on the host or the card, or steps that log \
             and save are likely."
        }
        (Bound::Host, false) => {
            "The host decides the time of this step, and hosts differ: measure yours with `vramscope bench`, then give the \
             record with --kernels."
        }
        (Bound::Gpu, false) => {
            "The GPU decides the time of this step: measure it with `vramscope bench` and give the record with --kernels; \
             what waits for data counts here too."
        }
    };
    Some(format!("A step takes {percent:.0}% {side} than predicted. {why}"))
}

/// Lengths that vary.
fn lengths(compared: &[Compared]) -> Option<String> {
    let lengths = || compared.iter().filter_map(|c| c.step.shape.seq);
    let (shortest, longest) = (lengths().min()?, lengths().max()?);
    (shortest < longest).then(|| {
        format!("Lengths vary from {shortest} to {longest} positions: the longest batch decides whether the run fits.")
    })
}
