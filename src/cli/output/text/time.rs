//! How long a step takes, and what it waits for.

use std::fmt::Write;

use vramscope_engine::format::grouped;
use vramscope_engine::time::{Bound, Milliseconds, TimeAnswer};
use vramscope_engine::units::{Bytes, Seconds};

use super::bar::bar;
use super::paint::{QUIET, STRONG};
use super::wrap::wrap;

/// Columns of a label, an amount, and a note behind it.
const LABEL: usize = 22;
const AMOUNT: usize = 11;
const NOTE: usize = 8;

/// The phases, the whole, what it waits for, and where the GPU's time goes.
pub fn render((ms, time): (&Milliseconds, &TimeAnswer<'_>), width: usize) -> String {
    let mut out = format!("{STRONG}Time of a step{STRONG:#}\n");
    let phases = [
        ("forward", ms.forward),
        ("backward", ms.backward),
        ("optimizer", ms.optimizer),
    ];
    let longest = phases.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    for (name, ms) in phases {
        out += &row(name, ms, longest, width);
    }
    for sentence in [whole(time), bound(time), sources(time)] {
        for line in wrap(&sentence, width.saturating_sub(2)) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

fn row(name: &str, ms: f64, longest: f64, width: usize) -> String {
    let cells = width.saturating_sub(LABEL + AMOUNT + NOTE + 2);
    let micros = |ms: f64| Bytes::new((ms * 1e3) as u64);
    let (bar, blanks) = bar(micros(ms), micros(longest), cells);
    let label = format!("  {name}");
    let amount = Seconds::new(ms / 1e3).to_string();
    format!("{label:LABEL$}{QUIET}{bar}{QUIET:#}{blanks}{amount:>AMOUNT$}\n")
}

fn whole(time: &TimeAnswer<'_>) -> String {
    let mut parts = vec![
        format!("{} a step", Seconds::new(time.step_ms / 1e3)),
        format!("{:.1} samples a second", time.samples_per_s),
    ];
    if let Some(tokens) = time.tokens_per_s {
        parts.push(format!("{} tokens a second", grouped(tokens as u64)));
    }
    parts.push(format!("{:.0}% of the card's FLOP/s", 100.0 * time.flops_utilisation));
    parts.join(" · ")
}

fn bound(time: &TimeAnswer<'_>) -> String {
    let ms = |ms: f64| Seconds::new(ms / 1e3);
    match time.bound {
        Bound::Host => format!(
            "The GPU waits {:.0}% of the step for the host, which issues kernels more slowly than they run. A larger \
             micro-batch costs little; CUDA graphs or `torch.compile` come towards {}.",
            100.0 * time.gpu_idle_share,
            ms(time.step_ms_without_host),
        ),
        Bound::Gpu => {
            let total: f64 = time.by_kernel.iter().map(|part| part.ms).sum();
            let largest: Vec<String> = time
                .by_kernel
                .iter()
                .take(3)
                .map(|part| format!("{} {:.0}%", part.name, 100.0 * part.ms / total))
                .collect();
            format!(
                "The GPU computes {:.0}% of the step: {}.",
                100.0 * (1.0 - time.gpu_idle_share),
                largest.join(", "),
            )
        }
    }
}

fn sources(time: &TimeAnswer<'_>) -> String {
    format!("Estimated from {} and {}.", time.kernels_from, time.host_from)
}
