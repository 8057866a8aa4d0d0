//! Findings in English. Other languages have their own words for the same [`Cause`]s and [`Step`]s.

mod evidence;
mod steps;

pub use evidence::evidence;
pub use steps::step;

use super::{Cause, Standing};
use crate::diagnose::oom::{Asker, Backend, Site};
use crate::format::gib;

/// A finding in one sentence. What is ruled out is said to be none.
pub fn title(cause: &Cause, standing: Standing) -> String {
    let is_ruled_out = standing == Standing::RuledOut;
    match cause {
        Cause::OutOfCapacity { .. } => "The run needs more memory than the card has".into(),
        Cause::OtherProcesses { .. } => "Other processes hold memory of this card".into(),
        Cause::Fragmentation { .. } if is_ruled_out => "Fragmentation is not the cause".into(),
        Cause::Fragmentation { .. } => "Fragmentation: free memory lies in pieces that are too small".into(),
        Cause::Limit { is_mps: true, .. } => "Apple's limit for GPU memory is reached".into(),
        Cause::Limit { .. } => "The process reached the limit that it was given".into(),
        Cause::RefusedThoughFree { .. } => "The card had room for the request, and still refused it".into(),
        Cause::OutsideTheCache { asker } => format!("{} found no memory outside PyTorch's cache", asker_name(*asker)),
        Cause::HostMemory { .. } => "The computer's own memory ran out, not the GPU's".into(),
        Cause::NoNumbers => "An out-of-memory error without its numbers".into(),
        Cause::PrivatePools { .. } => "CUDA graphs keep memory for themselves".into(),
        Cause::Site(site) => site_title(*site).into(),
        Cause::AttentionMatrix { .. } => "The request has the size of an attention matrix".into(),
        Cause::Logits { .. } => "The request has the size of logits".into(),
        Cause::Tensors { .. } => "The simulated step makes tensors of this size".into(),
        Cause::Retries { .. } => "The allocator has been short of memory before".into(),
        Cause::NearlyFull { .. } => "The card is nearly full".into(),
        Cause::Utilization { mean, .. } => format!("GPU utilization is {}", band(*mean)),
        Cause::Leak(growth) if growth.is_accelerating => "Memory leak: each step keeps more than the last".into(),
        Cause::Leak(_) => "Memory leak: each step keeps memory".into(),
        Cause::NoLeak { .. } => "No leak: memory does not grow from step to step".into(),
        Cause::LongSample { .. } => "Single steps need far more than the others".into(),
        Cause::DataLoading { .. } => "Data loading: the GPU waits for the next batch".into(),
        Cause::Communication { .. } => "Communication: GPUs wait for each other".into(),
        Cause::Copies { .. } => "Copies between computer and GPU take long".into(),
        Cause::Idle { busy } if *busy < 0.85 => "The GPU is idle for part of the time".into(),
        Cause::Idle { .. } => "The GPU is kept busy".into(),
        Cause::AttentionTime { .. } => "Attention takes most of the GPU's time".into(),
        Cause::HotSpots { .. } => "Operations that allocate more than 100 MB".into(),
        Cause::Peak { by_category, .. } => match by_category.first() {
            Some((category, _)) => format!("At the highest instant most memory is in {}", category.label()),
            None => "Nothing was live in the recording".into(),
        },
        Cause::NeverFreed { .. } => "Memory that was made in the recording and never freed".into(),
        Cause::ExpandableSegments { serves: Some(true), .. } => {
            "Expandable segments would have prevented the error".into()
        }
        Cause::ExpandableSegments { .. } if is_ruled_out => "Expandable segments would not have helped".into(),
        Cause::ExpandableSegments { .. } => "Expandable segments would have kept less memory".into(),
        Cause::Unforeseen { .. } if standing == Standing::Likely => {
            "The run holds more than the simulated step of the same setup".into()
        }
        Cause::Unforeseen { .. } => "The simulated step of the same setup".into(),
    }
}

/// Course row 11.bands.
fn band(mean: f64) -> &'static str {
    match mean {
        mean if mean > 0.95 => "excellent",
        mean if mean >= 0.85 => "good",
        mean if mean >= 0.7 => "fair",
        _ => "low",
    }
}

fn asker_name(asker: Asker) -> &'static str {
    match asker {
        Asker::Cublas => "cuBLAS",
        Asker::Cudnn => "cuDNN",
        Asker::Nccl => "NCCL",
        Asker::Driver(_) | Asker::Host => "The driver",
        Asker::Allocator(Backend::Cuda | Backend::Hip | Backend::Xpu | Backend::Mps) => "PyTorch",
    }
}

fn site_title(site: Site) -> &'static str {
    match site {
        Site::Load => "It happened while the model was loaded",
        Site::Vision => "It happened in the vision tower",
        Site::Attention => "It happened in attention",
        Site::Loss => "It happened at the logits and the loss",
        Site::Forward => "It happened in forward",
        Site::Backward => "It happened in backward",
        Site::OptimizerStates => "It happened when the optimizer made its states: the first step peaks here",
        Site::Optimizer => "It happened in the optimizer's update",
    }
}

/// A share in per cents; small ones with two decimals, as they decide.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{percent:.2}%")
    } else {
        format!("{percent:.1}%")
    }
}

/// Bytes in the unit that reads best, as PyTorch prints them.
fn bytes(bytes: crate::units::Bytes) -> String {
    if bytes.get() >= 1 << 30 {
        gib(bytes)
    } else {
        bytes.to_string()
    }
}
