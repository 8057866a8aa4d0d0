//! Pareto front of the setups found.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::order::sort_by;
use vramscope_engine::units::Bytes;
use vramscope_plan::{Choice, Plan};

use super::entries::{differing, planner};
use super::page::PlansState;
use crate::charts::{Axis, ChartFrame, Figure, LineChart, Lines, Palette, Series, Table, Unit};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{Store, stem};

/// Shows the Pareto front of fidelity, time and memory.
#[component]
pub fn Front() -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (PlansState::get(), Store::get());
    let choices = Memo::new(move |_| page.plan(|plan| plan.front.clone()).unwrap_or_default());
    let chart = Memo::new(move |_| chart(i18n, &choices.get()));
    let (pointed, picked) = (RwSignal::new(None), RwSignal::new(None));
    let here = Memo::new(move |_| pointed.get().or(picked.get()));
    let title = Signal::derive(move || t_string!(i18n, recommend.front).to_string());
    let rows = move |exact: bool| page.plan(|plan| table(i18n, plan, exact)).unwrap_or_default();
    let figure = Figure {
        id: "plan-front",
        title,
        stem: Signal::derive(move || stem(store, "front")),
        draw: Callback::new(move |surface| chart.with(|chart| chart.draw(surface, &Palette::read()))),
        shown: Callback::new(move |()| rows(false)),
        data: Callback::new(move |()| rows(true)),
    };
    let spoken = Signal::derive(move || {
        let at = here.get();
        choices.with(|all| {
            let choice = all.iter().find(|choice| Some(memory(choice)) == at);
            choice
                .zip(page.plan(Plan::clone))
                .map_or_else(String::new, |(choice, plan)| words(i18n, &plan, choice))
        })
    });
    let has_times = Memo::new(move |_| choices.with(|all| all.iter().any(|choice| choice.samples_per_s.is_some())));
    part(move || {
        (!choices.with(Vec::is_empty)).then(|| {
            let drawn = has_times.get().then(|| {
                view! {
                    <Lines
                        chart
                        pointed
                        resting=picked
                        on_pick=Callback::new(move |value| picked.set(Some(value)))
                        label=title
                        spoken
                        testid="plan-front-slider"
                    />
                }
            });
            view! {
                <ChartFrame figure>
                    <p class="muted small">{t!(i18n, recommend.front_explain)}</p>
                    {drawn}
                    <Choices choices here />
                </ChartFrame>
            }
            .into_any()
        })
    })
}

/// List of the setups, each a link to the planner.
#[component]
fn Choices(choices: Memo<Vec<Choice>>, here: Memo<Option<f64>>) -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (PlansState::get(), Store::get());
    part(move || {
        let plan = page.plan(Plan::clone)?;
        let row = |choice: Choice| {
            let at = memory(&choice);
            let words = words(i18n, &plan, &choice);
            let href = planner(store, &choice);
            view! {
                <li
                    data-testid="plan-front-row"
                    data-value=choice.peak_reserved.map(|b| b.get().to_string())
                    class:plans-here=move || here.get() == Some(at)
                >
                    <a href=href>{words}</a>
                </li>
            }
        };
        let rows: Vec<_> = choices.get().into_iter().map(row).collect();
        Some(view! { <ol class="plans-front">{rows}</ol> }.into_any())
    })
}

/// Bytes of a setup: reserved if the allocator was simulated, otherwise live.
fn memory(choice: &Choice) -> f64 {
    choice.reserved().get() as f64
}

/// Describes a setup: figures, distance, and differences from the request.
fn words(i18n: Words, plan: &Plan, choice: &Choice) -> String {
    let rate = choice.samples_per_s.map_or_else(String::new, |rate| {
        t_string!(i18n, recommend.rate, rate = format!("{rate:.2}")).to_string()
    });
    let parts = [
        gib(Bytes::new(memory(choice) as u64)),
        rate,
        fidelity(i18n, choice.distance),
        differing(i18n, plan, choice),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

fn fidelity(i18n: Words, distance: u32) -> String {
    match distance {
        0 => t_string!(i18n, recommend.same).to_string(),
        far => t_string!(i18n, recommend.distance, far = far.to_string()).to_string(),
    }
}

/// Builds the chart over memory, with a curve for each distance.
fn chart(i18n: Words, choices: &[Choice]) -> LineChart {
    let mut series: Vec<(u32, Vec<(f64, f64)>)> = Vec::new();
    for choice in choices {
        let Some(rate) = choice.samples_per_s else { continue };
        let point = (memory(choice), rate);
        match series.iter_mut().find(|(distance, _)| *distance == choice.distance) {
            Some((_, points)) => points.push(point),
            None => series.push((choice.distance, vec![point])),
        }
    }
    let all: Vec<(f64, f64)> = series.iter().flat_map(|(_, points)| points.clone()).collect();
    let series: Vec<Series> = series
        .into_iter()
        .enumerate()
        .map(|(style, (distance, mut points))| {
            sort_by(&mut points, |a, b| a.0.total_cmp(&b.0));
            Series {
                name: fidelity(i18n, distance),
                style,
                measured: points
                    .iter()
                    .map(|&(x, y)| crate::charts::Measured { x, y, range: None })
                    .collect(),
                points: points.into_iter().map(|(x, y)| (x, Some(y))).collect(),
            }
        })
        .collect();
    LineChart {
        x: Axis::over(
            Unit::Bytes,
            false,
            t_string!(i18n, recommend.reserved).to_owned(),
            all.iter().map(|point| point.0),
        ),
        y: Axis::over(
            Unit::SamplesPerSecond,
            false,
            t_string!(i18n, recommend.samples_a_second).to_owned(),
            all.iter().map(|point| point.1),
        ),
        series,
        limits: Vec::new(),
        marks: Vec::new(),
        pointed: None,
    }
}

fn table(i18n: Words, plan: &Plan, exact: bool) -> Table {
    let bytes = |choice: &Choice| match exact {
        true => (memory(choice) as u64).to_string(),
        false => gib(Bytes::new(memory(choice) as u64)),
    };
    let rate = |choice: &Choice| {
        choice
            .samples_per_s
            .map_or_else(String::new, |rate| format!("{rate:.3}"))
    };
    let row = |choice: &Choice| {
        vec![
            bytes(choice),
            rate(choice),
            choice.distance.to_string(),
            differing(i18n, plan, choice),
        ]
    };
    Table {
        head: vec![
            t_string!(i18n, recommend.reserved).to_owned(),
            t_string!(i18n, recommend.samples_a_second).to_owned(),
            t_string!(i18n, recommend.far).to_owned(),
            t_string!(i18n, recommend.change).to_owned(),
        ],
        rows: plan.front.iter().map(row).collect(),
    }
}
