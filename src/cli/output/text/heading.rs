//! Formats the heading of an answer: model and setup.

use vramscope_engine::format::count;

use vramscope_engine::setup::{Offload, Parallel};

use super::Estimate;
use super::paint::{QUIET, STRONG};
use super::setup_words::setup_words;
use super::wrap::wrap;

/// Formats name and size of the model, and the setup in the words of its flags.
pub fn render(estimate: &Estimate, width: usize) -> String {
    let report = estimate.report;
    let size = match (report.params, report.trainable) {
        (all, trained) if all == trained => format!("{} parameters", count(all)),
        (all, trained) => format!("{} parameters, {} trained", count(all), count(trained)),
    };
    let mut out = format!("{STRONG}{}{STRONG:#}  {size}\n", estimate.model);
    for line in wrap(&setup_words(estimate.setup), width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    if let Some(parallel) = &estimate.parallel {
        out += &format!("{QUIET}{}{QUIET:#}\n", parallel_words(parallel));
    }
    out
}

/// Formats parallelism as `each of 2 GPUs · strategy fsdp · offload`.
fn parallel_words(parallel: &Parallel) -> String {
    let mut words = format!(
        "each of {} GPUs · strategy {}",
        parallel.world,
        parallel.strategy.name()
    );
    if parallel.mp {
        words += " · mp";
    }
    match parallel.offload {
        Offload::None => {}
        Offload::Shards => words += " · offload",
        Offload::Optimizer | Offload::OptimizerAndParameters => {
            words += &format!(" · offload {}", parallel.offload.word());
        }
    }
    if let Some(stage) = parallel.stage {
        words += &format!(" · stage {stage}");
    }
    words
}
