//! Formats what a run takes before and beside its steps: lines of the card, then of the host.

use anstyle::Style;
use vramscope_engine::format::gib;
use vramscope_engine::report::{Around, HostBytes, HostRoom, HostUse, Occasion};
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::{Fit, Verdict};

use super::paint::{self, QUIET, STRONG};
use super::wrap::wrap;
use crate::output::target::Target;
use crate::phrases::phrase;

/// Columns before the text: sign, amount and gaps.
const INDENT: usize = 16;

/// Formats the section.
pub fn render(around: &Around, (target, host): (Option<&(Target, Fit)>, HostRoom), width: usize) -> String {
    let lines = Lines { width };
    let mut out = format!("{STRONG}{}{STRONG:#}\n", phrase!(around.title));
    for line in &around.card {
        let verdict = target.map(|(target, _)| line.fit(target.room(), host.processes).verdict);
        out += &lines.line(line.allocated, occasion(line.occasion), verdict);
    }
    out += &format!("{QUIET}{}{QUIET:#}\n", lines.wrapped(phrase!(around.host), 0));
    for line in &around.host {
        out += &lines.line(line.bytes.own, &with_range(on_host(line.what), &line.bytes), None);
    }
    let peak = around.host_peak(host.processes);
    let label = match host.processes {
        1 => phrase!(around.needs).to_owned(),
        n => phrase!(around.of_all, n = n),
    };
    out += &lines.line(peak.own, &with_range(&label, &peak), around.host_verdict(host));
    if let Some(memory) = host.memory {
        out += &lines.remark(&format!("Host memory of {}", gib(memory)));
    }
    out
}

/// Says that loading the model takes more than a step, if it does.
pub fn loading_over(around: &Around, (target, processes): (Option<&(Target, Fit)>, u64), steps: Bytes) -> String {
    let Some(line) = around.loading_over(steps) else {
        return String::new();
    };
    let said = phrase!(around.loading_over, bytes = gib(line.reserved));
    let verdict = target.map(|(target, _)| line.fit(target.room(), processes).verdict);
    let style = verdict.map_or(STRONG, paint::verdict);
    let judged = verdict.map_or_else(String::new, |verdict| format!(": {}", verdict.name()));
    format!("{style}{said} ({}){judged}{style:#}\n", occasion(line.occasion))
}

const fn occasion(of: Occasion) -> &'static str {
    match of {
        Occasion::LoadMoved => phrase!(around.load_moved),
        Occasion::LoadMapped => phrase!(around.load_mapped),
        Occasion::LoadCast => phrase!(around.load_cast),
        Occasion::LoadQuantised => phrase!(around.load_quantised),
        Occasion::LoadPartitioned => phrase!(around.load_partitioned),
        Occasion::Merge => phrase!(around.merge),
        Occasion::Gather => phrase!(around.gather),
    }
}

const fn on_host(what: HostUse) -> &'static str {
    match what {
        HostUse::Process => phrase!(around.process),
        HostUse::Loading => phrase!(around.loading),
        HostUse::Pinned => phrase!(around.pinned),
        HostUse::Workers => phrase!(around.workers),
        HostUse::Offloaded => phrase!(around.offloaded),
        HostUse::Paged => phrase!(around.paged),
        HostUse::SavedModel => phrase!(around.saved_model),
        HostUse::SavedStates => phrase!(around.saved_states),
    }
}

fn with_range(label: &str, bytes: &HostBytes) -> String {
    let mut out = label.to_owned();
    let [least, most] = bytes.range.map(gib);
    if least != most {
        out += &format!(", {}", phrase!(around.range, least = least, most = most));
    }
    if bytes.mapped > Bytes::ZERO {
        out += &format!("; {}", phrase!(around.files, bytes = gib(bytes.mapped)));
    }
    out
}

/// Formats lines for a layout of `width` columns.
struct Lines {
    width: usize,
}

impl Lines {
    fn line(&self, bytes: Bytes, label: &str, verdict: Option<Verdict>) -> String {
        let style = verdict.map_or(Style::new(), paint::verdict);
        let label = match verdict {
            Some(verdict) => format!("{label}: {}", verdict.name()),
            None => label.to_owned(),
        };
        let text = self.wrapped(&label, INDENT);
        format!("{style}   {:>11}  {text}{style:#}\n", gib(bytes))
    }

    fn remark(&self, text: &str) -> String {
        format!("{}{QUIET}{}{QUIET:#}\n", " ".repeat(INDENT), self.wrapped(text, INDENT))
    }

    fn wrapped(&self, text: &str, indent: usize) -> String {
        let lines = wrap(text, self.width.saturating_sub(indent));
        lines.join(&format!("\n{}", " ".repeat(indent)))
    }
}
