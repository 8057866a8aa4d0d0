//! Throughput and cost of a run.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use super::explained::{Explained, Number, span};
use crate::i18n::{Words, t_string, use_i18n};
use crate::worker::timing::{RunBill, Timing};

/// Shows the throughput of a step, and the duration and cost of the whole run.
#[component]
pub fn Figures(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let mut all: Vec<Figure> = range(i18n, &timing).into_iter().collect();
    all.push(samples(i18n, &timing));
    all.extend(tokens(i18n, &timing));
    all.push(utilisation(i18n, &timing));
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
