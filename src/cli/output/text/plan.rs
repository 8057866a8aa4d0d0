//! Formats a plan as text.

use vramscope_engine::format::{difference, gib, grouped};
use vramscope_engine::setup::Parallel;
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_engine::verdict::Verdict;
use vramscope_plan::{Choice, LadderStep, Plan, Reason};

use super::paint::{self, QUIET, STRONG};
use super::row::Row;
use super::setup_words::setup_words;
use super::wrap::wrap;
use crate::phrases::phrase;

/// Formats the whole plan: recommendation, reasons, alternatives, ladder, and how the search decided.
pub fn plan(plan: &Plan, sources: Option<[&str; 2]>, width: usize) -> String {
    let sections = [
        heading(plan, width),
        plan.recommended
            .as_ref()
            .map_or_else(|| nothing(plan, width), |best| recommended(plan, best, width)),
        reasons(plan, width),
        front(plan, width),
        ladder(plan, width),
        searched(plan, sources, width),
    ];
    let sections: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n")
}

fn heading(plan: &Plan, width: usize) -> String {
    let room = match &plan.card {
        Some(card) if plan.gpus > 1 => format!("{} × {card}", plan.gpus),
        Some(card) => card.clone(),
        None => "an allocator".to_owned(),
    };
    let samples = match plan.effective {
        Some(samples) => format!("{samples} samples a step"),
        None => "as many samples a step as fit".to_owned(),
    };
    let mut out = format!("{STRONG}{}{STRONG:#}  on {room}, {samples}\n", plan.model);
    let asked = format!("asked: {}", setup_words(&plan.asked));
    for line in wrap(&asked, width) {
        out += &format!("{QUIET}{line}{QUIET:#}\n");
    }
    out
}

fn recommended(plan: &Plan, best: &Choice, width: usize) -> String {
    let style = paint::verdict(Verdict::Fits);
    let mut out = format!("{style}RUN{style:#} ");
    out += &indented(&words(best), 4, width);
    let peak = best.reserved();
    out += &bar("  reserved at most", peak, plan.limit, "", width);
    let mut sentences = vec![format!(
        "Stays within {} of the {} that PyTorch can have.",
        gib(plan.planned),
        gib(plan.limit)
    )];
    if let (Some(ms), Some(rate)) = (best.step_ms, best.samples_per_s) {
        sentences.push(format!(
            "About {} a step, {rate:.2} samples a second.",
            Seconds::new(ms / 1e3)
        ));
    }
    match (best.next_batch, best.next_verdict) {
        (Some((batch, true)), _) => sentences.push(phrase!(recommend.next_trains, batch = batch)),
        (Some((batch, false)), None | Some(Verdict::Oom)) => sentences.push(phrase!(recommend.next_oom, batch = batch)),
        (Some((batch, false)), Some(_)) => sentences.push(phrase!(recommend.next_tight, batch = batch)),
        (None, _) => {}
    }
    if best.retries.unwrap_or(0) > 0 {
        sentences.push(phrase!(recommend.retries).to_owned());
    }
    out += &paragraph(&sentences.join(" "), width);
    out
}

fn nothing(plan: &Plan, width: usize) -> String {
    let style = paint::verdict(Verdict::Oom);
    let mut out = format!(
        "{style}NOTHING FITS{style:#} in {} of what may be changed\n",
        gib(plan.planned)
    );
    let Some(nearest) = &plan.nearest else {
        return out + &paragraph(&plan.refused.join(". "), width);
    };
    out += &paragraph(
        &format!(
            "Nearest: {}, {} too much, in {}.",
            words(&nearest.choice),
            gib(nearest.short),
            nearest.phase.label()
        ),
        width,
    );
    out += &format!("  {}:\n", phrase!(recommend.stands));
    for (what, bytes) in &nearest.parts {
        out += &bar(&format!("    {what}"), *bytes, plan.planned, "", width);
    }
    out
}

fn reasons(plan: &Plan, width: usize) -> String {
    if plan.reasons.is_empty() {
        return String::new();
    }
    let mut out = format!("{STRONG}{}{STRONG:#}\n", phrase!(recommend.reasons));
    for reason in &plan.reasons {
        out += &paragraph(&reason_words(reason), width);
    }
    out
}

fn reason_words(reason: &Reason) -> String {
    let Reason { key, from, to, .. } = reason;
    let mut parts = vec![format!("{key}: {from} → {to}")];
    if let Some(saves) = reason.saves {
        parts.push(match saves {
            ..0 => phrase!(recommend.takes_more, bytes = gib(Bytes::new(saves.unsigned_abs()))),
            _ => format!("saves {}", gib(Bytes::new(saves.unsigned_abs()))),
        });
    }
    if let Some(seconds) = reason.seconds {
        let time = Seconds::new(seconds.abs());
        parts.push(match seconds > 0.0 {
            true => format!("costs {time} per sample"),
            false => format!("is {time} per sample faster"),
        });
    }
    if reason.needed {
        parts.push("does not fit without it".to_owned());
    }
    format!("{}. {}", parts.join(", "), why(key, to))
}

/// Explains the effect of a change.
fn why(key: &str, to: &str) -> &'static str {
    match (key, to) {
        ("ckpt", "none") => phrase!(recommend.why_ckpt_none),
        ("ckpt", _) => phrase!(recommend.why_ckpt),
        ("optim", "adamw_fused") => phrase!(recommend.why_fused),
        ("optim", "adamw_8bit") => phrase!(recommend.why_8bit),
        ("optim", "paged_adamw" | "paged_adamw_8bit" | "paged_lion" | "paged_lion_8bit") => {
            phrase!(recommend.why_paged)
        }
        ("optim", "adafactor" | "adafactor_torch") => phrase!(recommend.why_adafactor),
        ("optim", _) => phrase!(recommend.why_optim),
        ("precision", "bf16") => phrase!(recommend.why_bf16),
        ("precision", _) => phrase!(recommend.why_precision),
        ("freeze", "lora") => phrase!(recommend.why_lora),
        ("freeze", "qlora") => phrase!(recommend.why_qlora),
        ("freeze", "vision") => "The vision tower stays as it is.",
        ("freeze", "all-but-connector") => "Only the connector learns.",
        ("loss", "fused_linear") => phrase!(recommend.why_loss),
        ("attn", "eager") => phrase!(recommend.why_eager),
        ("attn", _) => phrase!(recommend.why_attn),
        ("sample", _) => phrase!(recommend.why_sample),
        ("strategy", _) => phrase!(recommend.why_strategy),
        _ => "",
    }
}

fn front(plan: &Plan, width: usize) -> String {
    if plan.front.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "{STRONG}{}{STRONG:#} in fidelity, time and memory, {} of {}\n",
        phrase!(recommend.front),
        plan.front.len(),
        plan.front_len
    );
    for choice in &plan.front {
        let speed = choice
            .samples_per_s
            .map_or_else(String::new, |rate| format!("{rate:.2}/s"));
        let label = format!("  distance {}", choice.distance);
        out += &bar(&label, choice.reserved(), plan.limit, &speed, width);
        out += &indented(&format!("    {}", differing(plan, choice)), 4, width);
    }
    out
}

fn ladder(plan: &Plan, width: usize) -> String {
    let highest = plan
        .ladder
        .iter()
        .filter_map(|step| step.peak)
        .max()
        .unwrap_or_default();
    if plan.ladder.len() < 2 {
        return String::new();
    }
    let mut out = format!("{STRONG}Step by step until it fits{STRONG:#}: the usual changes, in order\n");
    for step in &plan.ladder {
        let label = match (&step.key, &step.to) {
            (Some(key), Some(to)) => format!("  {key} {to}"),
            _ => "  your setup".to_owned(),
        };
        let note = match (step.trains, step.kept) {
            (true, _) => "fits",
            (_, true) => "",
            _ => "skipped",
        };
        out += &bar(
            &label,
            step.peak.unwrap_or_default(),
            highest.max(plan.planned),
            note,
            width,
        );
        let phase = step
            .phase
            .map_or_else(String::new, |phase| format!("peak in {}", phase.label()));
        let change = if step.key.is_some() {
            format!("{}, ", difference(step.difference))
        } else {
            String::new()
        };
        out += &format!("{QUIET}    {change}{phase}{QUIET:#}\n");
    }
    out += &paragraph(
        "A change saves memory only if it lowers the peak phase; others are skipped.",
        width,
    );
    if let Some(offer) = &plan.offer {
        out += &paragraph(&offered(offer), width);
    }
    out
}

fn offered(offer: &LadderStep) -> String {
    let (key, to) = (offer.key.as_deref().unwrap_or(""), offer.to.as_deref().unwrap_or(""));
    let rest = if offer.trains {
        "It is enough by itself"
    } else {
        "It is not enough by itself"
    };
    format!(
        "Largest single saving: {key} {to}, {}. {rest}.",
        difference(offer.difference)
    )
}

fn searched(plan: &Plan, sources: Option<[&str; 2]>, width: usize) -> String {
    let decided = &plan.searched;
    let count = |count: usize| grouped(count as u64);
    let mut sentences = vec![phrase!(
        recommend.searched,
        setups = count(decided.setups),
        recorded = count(decided.recorded),
        summed = count(decided.summed),
        bounded = count(decided.bounded),
        dominated = count(decided.dominated),
        refused = count(decided.refused),
    )];
    match sources {
        Some([kernels, host]) => sentences.push(phrase!(recommend.times, kernels = kernels, host = host)),
        None => sentences.push(phrase!(recommend.no_times).to_owned()),
    }
    sentences.push(format!(
        "{} {}.",
        phrase!(recommend.not_searched),
        plan.not_searched.join("; ")
    ));
    let mut out = String::new();
    for sentence in sentences {
        for line in wrap(&sentence, width) {
            out += &format!("{QUIET}{line}{QUIET:#}\n");
        }
    }
    out
}

fn words(choice: &Choice) -> String {
    let mut words = setup_words(&choice.setup);
    if let Some(parallel) = &choice.parallel {
        words += &format!(" · {}", parallel_words(parallel));
    }
    words
}

fn parallel_words(parallel: &Parallel) -> String {
    let mut words = format!("strategy {}", parallel.strategy.name());
    for (on, word) in [(parallel.mp, " mp"), (parallel.offload.is_any(), " offload")] {
        words += if on { word } else { "" };
    }
    words
}

/// Differences from the asked setup, and the micro-batch.
fn differing(plan: &Plan, choice: &Choice) -> String {
    let asked = setup_words(&plan.asked);
    let asked: Vec<&str> = asked.split(" · ").collect();
    let own = words(choice);
    let batch = format!("batch\u{a0}{}", choice.setup.batch);
    let differing = own.split(" · ").filter(|word| !asked.contains(word) || *word == batch);
    differing.collect::<Vec<_>>().join(" · ")
}

fn bar(label: &str, bytes: Bytes, of: Bytes, note: &str, width: usize) -> String {
    let row = Row {
        label,
        bytes,
        of: Some(of),
        note,
        bar_style: QUIET,
        text_style: anstyle::Style::new(),
    };
    row.render(width)
}

fn paragraph(text: &str, width: usize) -> String {
    indented(&format!("  {text}"), 2, width)
}

/// Wraps text to a width, with continuation lines indented.
fn indented(text: &str, by: usize, width: usize) -> String {
    let first: usize = text.chars().take_while(|c| *c == ' ').count();
    let lines = wrap(text.trim_start(), width.saturating_sub(by.max(first)));
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        out += &" ".repeat(if at == 0 { first } else { by });
        out += line;
        out.push('\n');
    }
    out
}
