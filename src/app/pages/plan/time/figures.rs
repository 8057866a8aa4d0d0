//! Throughput and cost of a run.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::{exact, gib, grouped};
use vramscope_engine::units::Bytes;

use super::explained::{Explained, Number, span};
use crate::i18n::{Words, t_string, use_i18n};
use crate::worker::timing::{Communication, RunBill, Timing};

/// Shows the throughput of a step, and the duration and cost of the whole run.
#[component]
pub fn Figures(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let mut all: Vec<Figure> = range(i18n, &timing).into_iter().collect();
    all.push(samples(i18n, &timing));
    all.extend(tokens(i18n, &timing));
    all.push(utilisation(i18n, &timing));
    if let Some(with) = timing.communication {
        all.extend(communication(i18n, &timing, with));
    }
    if let Some(bill) = timing.bill {
        all.extend(run(i18n, &timing, bill));
    }
    let rows = all.into_iter().map(|(testid, value, explained)| {
        view! {
            <div class="figure">
                <dt>{explained.name.clone()}</dt>
                <dd>
                    <strong>
                        <Number explained testid value />
                    </strong>
                </dd>
            </div>
        }
    });
    view! { <dl class="figures">{rows.collect_view()}</dl> }
}

/// Name in tests, exact value and derivation of a figure.
type Figure = (&'static str, f64, Explained);

/// Interval of the step's time, if its spread is known.
fn range(i18n: Words, timing: &Timing) -> Option<Figure> {
    let [low, high] = timing.range_ms?;
    let explained = Explained {
        name: t_string!(i18n, time.range).to_owned(),
        result: format!("{} – {}", span(low), span(high)),
        formula: t_string!(i18n, time.f_range).to_owned(),
        numbers: span(timing.step_ms),
        source: t_string!(i18n, time.s_range).to_owned(),
    };
    Some(("step-ms-low", low, explained))
}

fn samples(i18n: Words, timing: &Timing) -> Figure {
    let explained = Explained {
        name: t_string!(i18n, time.samples_per_s).to_owned(),
        result: rate(timing.samples_per_s),
        formula: t_string!(i18n, time.f_samples).to_owned(),
        numbers: format!("{} ÷ {}", grouped(timing.samples), span(timing.interval_ms)),
        source: t_string!(i18n, time.s_lines).to_owned(),
    };
    ("samples-per-s", timing.samples_per_s, explained)
}

fn tokens(i18n: Words, timing: &Timing) -> Option<Figure> {
    let tokens = timing.tokens_per_s?;
    let explained = Explained {
        name: t_string!(i18n, time.tokens_per_s).to_owned(),
        result: grouped(tokens as u64),
        formula: t_string!(i18n, time.f_tokens).to_owned(),
        numbers: format!("{} × {}", rate(timing.samples_per_s), grouped(timing.positions)),
        source: t_string!(i18n, time.s_lines).to_owned(),
    };
    Some(("tokens-per-s", tokens, explained))
}

fn utilisation(i18n: Words, timing: &Timing) -> Figure {
    let (flops, peak) = (timing.flops / 1e12, timing.peak / 1e12);
    let explained = Explained {
        name: t_string!(i18n, time.utilisation).to_owned(),
        result: format!("{:.1}%", 100.0 * timing.flops_utilisation),
        formula: t_string!(i18n, time.f_utilisation).to_owned(),
        numbers: format!("{flops:.2} TFLOP ÷ ({} × {peak:.0} TFLOP/s)", span(timing.interval_ms)),
        source: t_string!(i18n, time.s_rate).to_owned(),
    };
    ("flops-utilisation", timing.flops_utilisation, explained)
}

/// Wait for other GPUs, and what is sent to them.
fn communication(i18n: Words, timing: &Timing, with: Communication) -> [Figure; 2] {
    let told = |name: &str, result: String, formula: &str, numbers: String| Explained {
        name: name.to_owned(),
        result,
        formula: formula.to_owned(),
        numbers,
        source: t_string!(i18n, time.s_several).to_owned(),
    };
    let waits = told(
        t_string!(i18n, time.exposed),
        span(with.exposed_ms),
        t_string!(i18n, time.f_exposed),
        format!("{} − {}", span(timing.step_ms), span(timing.step_ms - with.exposed_ms)),
    );
    let bytes = Bytes::new(with.bytes_sent);
    let sent = told(
        t_string!(i18n, time.sent),
        gib(bytes),
        t_string!(i18n, time.f_sent),
        exact(bytes),
    );
    [
        ("exposed-ms", with.exposed_ms, waits),
        ("bytes-sent", with.bytes_sent as f64, sent),
    ]
}

/// Explains the time in which a pipeline fills and drains.
pub fn filling(i18n: Words, timing: &Timing) -> Explained {
    let (stages, filling) = (timing.communication.map_or(1, |with| with.gpus), timing.filling_ms());
    let turn = filling / stages.saturating_sub(1).max(1) as f64;
    Explained {
        name: t_string!(i18n, time.filling).to_owned(),
        result: span(filling),
        formula: t_string!(i18n, time.f_filling).to_owned(),
        numbers: format!("({stages} − 1) × {}", span(turn)),
        source: t_string!(i18n, time.s_several).to_owned(),
    }
}

fn run(i18n: Words, timing: &Timing, bill: RunBill) -> Vec<Figure> {
    let hours = |n: f64| t_string!(i18n, time.hours, n = format!("{n:.1}"));
    let explained = |name: &str, result: String, formula: &str, numbers: String| Explained {
        name: name.to_owned(),
        result,
        formula: formula.to_owned(),
        numbers,
        source: t_string!(i18n, time.s_entered).to_owned(),
    };
    let duration = explained(
        t_string!(i18n, time.duration),
        hours(bill.hours),
        t_string!(i18n, time.f_duration),
        format!("{} ÷ {}/s", grouped(bill.samples), rate(timing.samples_per_s)),
    );
    let mut all = vec![("run-hours", bill.hours, duration)];
    if let (Some(cost), Some(price)) = (bill.cost, timing.price_per_hour) {
        let cost_told = explained(
            t_string!(i18n, time.cost),
            format!("{cost:.2}"),
            t_string!(i18n, time.f_cost),
            format!("{} × {price}", hours(bill.hours)),
        );
        all.push(("run-cost", cost, cost_told));
    }
    if let (Some(kwh), Some(watts)) = (bill.kwh_at_most, timing.watts) {
        let energy = explained(
            t_string!(i18n, time.energy),
            format!("{kwh:.1} kWh"),
            t_string!(i18n, time.f_energy),
            format!("{} × {watts} W", hours(bill.hours)),
        );
        all.push(("run-kwh", kwh, energy));
    }
    all
}

/// Formats a rate per second with about three significant digits.
fn rate(n: f64) -> String {
    match n {
        n if n >= 1000.0 => grouped(n as u64),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.3}"),
    }
}
