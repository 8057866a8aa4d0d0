//! Formats the time of a step and its bottlenecks.

use std::fmt::Write;

use vramscope_engine::format::grouped;
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_time::{Bill, Bound, CommunicationAnswer, DataAnswer, Milliseconds, Point, Resource, TimeAnswer};

use super::bar::bar;
use super::gantt;
use super::paint::{QUIET, STRONG};
use super::wrap::wrap;

use crate::phrases::phrase;

/// Columns of a label, of an amount, and of the note after it.
const LABEL: usize = 22;
const AMOUNT: usize = 11;
const NOTE: usize = 8;

/// Formats phases, total, bottlenecks, GPU time by part, and data loading.
pub fn render((ms, time): (&Milliseconds, &TimeAnswer<'_>), width: usize) -> String {
    let mut out = format!("{STRONG}Time of a step{STRONG:#}\n");
    let mut rows = vec![
        ("forward", ms.forward),
        ("backward", ms.backward),
        ("optimizer", ms.optimizer),
    ];
    rows.extend(time.communication.map(|c| ("… communication", c.exposed_ms)));
    let filling = time.communication.filter(|c| c.filling_ms > 0.0);
    rows.extend(filling.map(|c| ("filling, draining", c.filling_ms)));
    rows.extend(time.data.as_ref().map(|data| ("wait for data", data.wait_ms)));
    let longest = rows.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    for (name, ms) in rows {
        out += &row(name, ms, longest, width);
    }
    let sentences = [
        Some(whole(time)),
        Some(bound(time)),
        bottleneck(time),
        Some(roofline(time)),
        time.communication.as_ref().map(communication),
        time.communication.map(|_| phrase!(time.several_are_short).to_owned()),
        time.data.as_ref().map(data),
        time.run.as_ref().map(run),
        Some(sources(time)),
    ];
    for sentence in sentences.into_iter().flatten() {
        for line in wrap(&sentence, width.saturating_sub(2)) {
            let _ = writeln!(out, "  {line}");
        }
    }
    out += &ways(time);
    if let Some(data) = &time.data {
        out += &gantt::render(data, width);
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
    let mut parts = vec![step(time), format!("{:.1} samples a second", time.samples_per_s)];
    if let Some(tokens) = time.tokens_per_s {
        parts.push(format!("{} tokens a second", grouped(tokens as u64)));
    }
    parts.push(format!("{:.0}% of the card's FLOP/s", 100.0 * time.flops_utilisation));
    parts.join(" · ")
}

/// Formats the time of a step and its interval.
fn step(time: &TimeAnswer<'_>) -> String {
    let span = |ms: f64| Seconds::new(ms / 1e3);
    let step = format!("{} a step", span(time.step_ms));
    match time.step_ms_interval {
        Some([low, high]) => format!("{step} ({} to {} nine times in ten)", span(low), span(high)),
        None => step,
    }
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

/// Formats the share of the card's rate that the longest operations reach.
fn roofline(time: &TimeAnswer<'_>) -> String {
    let near = |point: &Point| {
        format!(
            "{} of {} {:.0}%",
            point.name,
            point.component,
            100.0 * point.share_of_roof
        )
    };
    let longest: Vec<String> = time.roofline.iter().take(3).map(near).collect();
    format!(
        "Of the roof ({:.0} TFLOP/s of large products, {} GB/s of large copies) they reach: {}.",
        time.roof.tflops,
        grouped(time.roof.gb_per_s as u64),
        longest.join(", "),
    )
}

/// Formats the largest bottleneck, and the gain from removing it.
fn bottleneck(time: &TimeAnswer<'_>) -> Option<String> {
    let first = time.bottlenecks.first()?;
    let (what, remedy) = match first.resource {
        Resource::Data => ("data", phrase!(time.help_data_wait)),
        Resource::Communication => ("communication", phrase!(time.help_communication)),
        Resource::Host => ("the host", phrase!(time.help_host_wait)),
        Resource::Arithmetic => ("arithmetic", phrase!(time.help_arithmetic)),
        Resource::Memory => ("memory traffic", phrase!(time.help_memory)),
    };
    let second = time.bottlenecks.get(1).map_or_else(String::new, |next| {
        format!(
            "; without {} {}",
            name(next.resource),
            Seconds::new(next.step_ms_without / 1e3)
        )
    });
    Some(format!(
        "Bottleneck: {what}. Without it a step would take {}, {:.2} times as fast{second}. What helps: {remedy}.",
        Seconds::new(first.step_ms_without / 1e3),
        first.speedup,
    ))
}

const fn name(resource: Resource) -> &'static str {
    match resource {
        Resource::Data => phrase!(time.data_wait),
        Resource::Communication => "communication",
        Resource::Host => "the host",
        Resource::Arithmetic => "arithmetic",
        Resource::Memory => "memory traffic",
    }
}

fn communication(c: &CommunicationAnswer) -> String {
    let host = match c.bytes_to_and_from_host {
        0 => String::new(),
        bytes => format!("; {} between card and host", Bytes::new(bytes)),
    };
    format!(
        "Communication: {} sent by each GPU in {} calls{host}, {} in all, of which {} is not hidden behind the \
         computation.",
        Bytes::new(c.bytes_sent),
        grouped(c.calls),
        Seconds::new(c.total_ms / 1e3),
        Seconds::new(c.exposed_ms / 1e3),
    )
}

/// Formats the strategies for the same number of GPUs, fastest first.
fn ways(time: &TimeAnswer<'_>) -> String {
    let mut out = String::new();
    if !time.ways.is_empty() {
        let _ = writeln!(
            out,
            "  {QUIET}on as many GPUs       samples/s     a step    sent by each   waited for{QUIET:#}"
        );
    }
    for way in &time.ways {
        let _ = writeln!(
            out,
            "  {:<20} {:>10.1} {:>10} {:>15} {:>12}",
            way.name,
            way.samples_per_s,
            Seconds::new(way.step_ms / 1e3).to_string(),
            Bytes::new(way.bytes_sent).to_string(),
            Seconds::new(way.exposed_ms / 1e3).to_string(),
        );
    }
    out
}

fn data(data: &DataAnswer) -> String {
    let best = match data.best_workers {
        best if best == data.workers => "the fewest that sustain this".to_owned(),
        best => format!("{best} are the fewest that give the most"),
    };
    format!(
        "Data: a step every {}, the GPU waits {:.0}% of the time with {} workers; {best}.",
        Seconds::new(data.interval_ms / 1e3),
        100.0 * data.idle_share,
        data.workers,
    )
}

fn run(bill: &Bill) -> String {
    let mut out = format!(
        "The run of {} samples takes {:.1} hours",
        grouped(bill.samples),
        bill.hours
    );
    if let Some(cost) = bill.cost {
        let _ = write!(out, ", costs {cost:.2}");
    }
    if let Some(kwh) = bill.kwh_at_most {
        let _ = write!(out, ", draws at most {kwh:.1} kWh");
    }
    out + "."
}

fn sources(time: &TimeAnswer<'_>) -> String {
    format!("Estimated from {} and {}.", time.kernels_from, time.host_from)
}
