//! Chart of a step's time.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_time::Phase;

use super::explained::{Explained, Number, span};
use super::{figures, source};
use crate::charts::{Bar, Segment};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::worker::timing::Timing;

/// Shows the step above the GPU's and the host's time, of which the longer one decides.
#[component]
pub fn Lines(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let rows = [
        Row {
            name: t_string!(i18n, time.step),
            explained: step(i18n, &timing),
            testid: "step-ms",
            ms: timing.phases,
            value: timing.step_ms,
            filling: timing.filling_ms(),
            wait: timing.wait_ms(),
            decides: false,
        },
        Row {
            name: t_string!(i18n, time.gpu),
            explained: line(i18n, &timing, true),
            testid: "gpu-ms",
            ms: timing.busy(),
            value: timing.busy().iter().sum(),
            filling: 0.0,
            wait: 0.0,
            decides: !timing.host_decides(),
        },
        Row {
            name: t_string!(i18n, time.host),
            explained: line(i18n, &timing, false),
            testid: "host-ms",
            ms: timing.host_line(),
            value: timing.host_line().iter().sum(),
            filling: 0.0,
            wait: 0.0,
            decides: timing.host_decides(),
        },
    ];
    let scale = rows
        .iter()
        .map(|row| row.ms.iter().sum::<f64>())
        .fold(timing.interval_ms, f64::max);
    let many =
        (timing.micro_batches > 1).then(|| t_string!(i18n, time.phases_of, n = timing.micro_batches.to_string()));
    view! {
        <table class="time-lines">
            <colgroup>
                <col class="time-name" />
                <col />
                <col class="time-amount" />
            </colgroup>
            <tbody>{rows.map(|row| row.view(i18n, scale)).into_iter().collect_view()}</tbody>
        </table>
        <ul class="legend">{legend(i18n, &timing)}</ul>
        <p class="muted small">{decides(i18n, &timing)} " " {many}</p>
    }
}

/// A line of the chart.
struct Row {
    name: &'static str,
    explained: Explained,
    testid: &'static str,
    /// Milliseconds of each phase.
    ms: [f64; 3],
    /// Milliseconds that are shown beside the bar.
    value: f64,
    /// Milliseconds in which a pipeline fills and drains, after the phases.
    filling: f64,
    /// Milliseconds of waiting for data after that.
    wait: f64,
    /// True if the step takes as long as this line.
    decides: bool,
}

impl Row {
    fn view(self, i18n: Words, scale: f64) -> impl IntoView + use<> {
        let Self {
            name,
            explained,
            testid,
            value,
            decides,
            ..
        } = self;
        let mut segments: Vec<Segment> = Phase::ALL
            .into_iter()
            .zip(self.ms)
            .map(|(phase, ms)| segment(class(phase), phase_name(i18n, phase), ms, scale))
            .collect();
        if self.filling > 0.0 {
            segments.push(segment(
                "time-filling",
                t_string!(i18n, time.filling),
                self.filling,
                scale,
            ));
        }
        if self.wait > 0.0 {
            segments.push(segment("time-wait", t_string!(i18n, time.wait), self.wait, scale));
        }
        view! {
            <tr class:time-decides=decides>
                <th scope="row">{name}</th>
                <td class="time-bar">
                    <Bar segments />
                </td>
                <td class="time-value">
                    <Number explained testid value />
                    {decides.then(|| view! { <span class="offscreen">{t!(i18n, time.decides)}</span> })}
                </td>
            </tr>
        }
    }
}

/// The phases, and the wait for data if there is one, with their times.
fn legend(i18n: Words, timing: &Timing) -> impl IntoView + use<> {
    let phases = Phase::ALL.into_iter().zip(timing.phases).enumerate();
    let parts: Vec<_> = phases
        .map(|(at, (phase, ms))| {
            let explained = phase_told(i18n, timing, at, phase_name(i18n, phase), ms);
            view! { <Part class=class(phase) name=phase_name(i18n, phase) explained key=key(phase) ms=exact(timing, phase) /> }
        })
        .collect();
    let filling = timing.filling_ms();
    let fills = (filling > 0.0).then(|| {
        let explained = figures::filling(i18n, timing);
        view! { <Part class="time-filling" name=t_string!(i18n, time.filling) explained key="filling" ms=filling /> }
    });
    let wait = timing.wait_ms();
    let waits = (wait > 0.0).then(|| {
        let explained = wait_told(i18n, timing);
        view! { <Part class="time-wait" name=t_string!(i18n, time.wait) explained key="wait" ms=wait /> }
    });
    view! { {parts} {fills} {waits} }
}

/// Says whether the GPU or the host decides, and for which share of the time the GPU is idle or busy.
fn decides(i18n: Words, timing: &Timing) -> String {
    let share = |part: f64| format!("{:.0}", 100.0 * part);
    match timing.host_decides() {
        true => t_string!(i18n, time.host_decides, share = share(timing.idle_share)),
        false => t_string!(i18n, time.gpu_decides, share = share(1.0 - timing.idle_share)),
    }
}

/// A phase, or the wait for data, with its time.
#[component]
fn Part(class: &'static str, name: &'static str, explained: Explained, key: &'static str, ms: f64) -> impl IntoView {
    view! {
        <li data-testid="time-part" data-name=key data-value=ms.to_string()>
            <span class=format!("swatch {class}") aria-hidden="true"></span>
            <span class="legend-name">{name}</span>
            <span class="legend-value">
                <Number explained />
            </span>
        </li>
    }
}

fn segment(class: &'static str, name: &str, ms: f64, scale: f64) -> Segment {
    Segment {
        class,
        share: ms / scale.max(f64::MIN_POSITIVE),
        title: format!("{name}: {}", span(ms)),
    }
}

const fn class(phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => "time-forward",
        Phase::Backward => "time-backward",
        Phase::Optimizer => "time-optimizer",
    }
}

const fn key(phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Optimizer => "optimizer",
    }
}

fn phase_name(i18n: Words, phase: Phase) -> &'static str {
    match phase {
        Phase::Forward => t_string!(i18n, phase.forward),
        Phase::Backward => t_string!(i18n, phase.backward),
        Phase::Optimizer => t_string!(i18n, phase.optimizer),
    }
}

/// Milliseconds of one micro-batch; the same value as the command line's `ms`.
const fn exact(timing: &Timing, phase: Phase) -> f64 {
    match phase {
        Phase::Forward => timing.ms.forward,
        Phase::Backward => timing.ms.backward,
        Phase::Optimizer => timing.ms.optimizer,
    }
}

fn step(i18n: Words, timing: &Timing) -> Explained {
    if timing.communication.is_some() {
        let parts = timing
            .phases
            .into_iter()
            .chain((timing.filling_ms() > 0.0).then_some(timing.filling_ms()));
        return Explained {
            name: t_string!(i18n, time.step).to_owned(),
            result: span(timing.step_ms),
            formula: t_string!(i18n, time.f_step_several).to_owned(),
            numbers: parts.map(span).collect::<Vec<_>>().join(" + "),
            source: t_string!(i18n, time.s_several).to_owned(),
        };
    }
    let [forward, backward, optimizer] = [timing.ms.forward, timing.ms.backward, timing.ms.optimizer].map(span);
    Explained {
        name: t_string!(i18n, time.step).to_owned(),
        result: span(timing.step_ms),
        formula: t_string!(i18n, time.f_step).to_owned(),
        numbers: format!("{} × ({forward} + {backward}) + {optimizer}", timing.micro_batches),
        source: t_string!(i18n, time.s_lines).to_owned(),
    }
}

/// Explains the GPU's time or the host's.
fn line(i18n: Words, timing: &Timing, is_gpu: bool) -> Explained {
    let of = if is_gpu { timing.busy() } else { timing.host_line() };
    let [name, formula, source] = match is_gpu {
        true => [
            t_string!(i18n, time.gpu).to_owned(),
            t_string!(i18n, time.f_gpu).to_owned(),
            source::kernel_source(i18n, timing),
        ],
        false => [
            t_string!(i18n, time.host).to_owned(),
            t_string!(i18n, time.f_host).to_owned(),
            source::host_source(i18n, timing),
        ],
    };
    Explained {
        name,
        result: span(of.iter().sum()),
        formula,
        numbers: of.map(span).join(" + "),
        source,
    }
}

fn phase_told(i18n: Words, timing: &Timing, at: usize, name: &str, ms: f64) -> Explained {
    let busy = timing.busy()[at];
    Explained {
        name: name.to_owned(),
        result: span(ms),
        formula: match timing.communication {
            Some(_) => t_string!(i18n, time.f_phase_several).to_owned(),
            None => t_string!(i18n, time.f_phase).to_owned(),
        },
        numbers: format!("{} + {}", span(busy), span((ms - busy).max(0.0))),
        source: t_string!(i18n, time.s_lines).to_owned(),
    }
}

fn wait_told(i18n: Words, timing: &Timing) -> Explained {
    Explained {
        name: t_string!(i18n, time.wait).to_owned(),
        result: span(timing.wait_ms()),
        formula: t_string!(i18n, time.f_wait).to_owned(),
        numbers: format!("{} − {}", span(timing.interval_ms), span(timing.step_ms)),
        source: t_string!(i18n, time.s_entered).to_owned(),
    }
}
