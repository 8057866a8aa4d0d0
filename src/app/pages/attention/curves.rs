//! Charts of the attention page: memory and time against length.

use leptos::prelude::*;
use vramscope_benchmark::MeasuredPoint;
use vramscope_engine::attention::Algorithm;
use vramscope_engine::order::sort_by;
use vramscope_engine::units::Seconds;

use super::legend::style;
use super::state::Attention;
use crate::charts::{Axis, ChartFrame, Figure, Limit, LineChart, Lines, Measured, Palette, Series, Table, Unit};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::{Store, stem};
use crate::state::Key;
use crate::widgets::Switch;
use crate::words;
use crate::worker::protocol::AttentionCurve;

/// Values of a curve by sequence length.
type Values = Vec<(u64, Option<f64>)>;

/// Chart of the peak memory beyond the inputs against length.
#[component]
pub fn MemoryChart() -> impl IntoView {
    let i18n = use_i18n();
    let chart = Memo::new(move |_| memory_chart(i18n, Attention::get()));
    let figure = figure(
        "attention-memory",
        Signal::derive(move || t_string!(i18n, attention.memory).to_string()),
        chart,
    );
    let label = Signal::derive(move || t_string!(i18n, attention.slider_memory).to_string());
    view! {
        <ChartFrame figure>
            <p class="muted small">{t!(i18n, attention.explain)}</p>
            <Scales />
            <Curves chart label testid="memory-slider" />
        </ChartFrame>
    }
}

/// Chart of the estimated time against length, with measured points.
#[component]
pub fn TimeChart() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let chart = Memo::new(move |_| time_chart(i18n, attention));
    let figure = figure(
        "attention-time",
        Signal::derive(move || t_string!(i18n, attention.time).to_string()),
        chart,
    );
    let label = Signal::derive(move || t_string!(i18n, attention.slider_time).to_string());
    let explain = move || {
        let card = attention
            .card
            .get()
            .map_or_else(String::new, |card| card.name.to_owned());
        t_string!(i18n, attention.explain_time, card = card).to_string()
    };
    view! {
        <ChartFrame figure>
            <p class="muted small">{explain}</p>
            <Curves chart label testid="time-slider" />
        </ChartFrame>
    }
}

/// Switches for logarithmic axes, shared by both charts.
#[component]
fn Scales() -> impl IntoView {
    view! {
        <div class="chart-tools">
            <Switch key=Key::LogX />
            <Switch key=Key::LogY />
        </div>
    }
}

#[component]
fn Curves(chart: Memo<LineChart>, label: Signal<String>, testid: &'static str) -> impl IntoView {
    let attention = Attention::get();
    let resting = Signal::derive(move || Some(attention.selected.get() as f64));
    let spoken = Signal::derive(move || chart.with(|chart| spoken(chart, attention.shown_length())));
    view! {
        <Lines
            chart
            pointed=attention.pointed
            resting
            on_pick=Callback::new(move |length| attention.select(length))
            label
            spoken
            testid
        />
    }
}

fn figure(id: &'static str, title: Signal<String>, chart: Memo<LineChart>) -> Figure {
    let store = Store::get();
    Figure {
        id,
        title,
        stem: Signal::derive(move || stem(store, id)),
        draw: Callback::new(move |surface| chart.with(|chart| chart.draw(surface, &Palette::read()))),
        shown: Callback::new(move |()| chart.with(|chart| table(chart, Unit::words))),
        data: Callback::new(move |()| chart.with(|chart| table(chart, Unit::exact))),
    }
}

/// Builds the data table: a row per length, a column per curve, and a further column for its measured points, if any.
fn table(chart: &LineChart, words: fn(Unit, f64) -> String) -> Table {
    let unit = chart.y.unit;
    let mut head = vec![chart.x.title.clone()];
    for series in &chart.series {
        head.push(format!("{}{}", series.name, unit.suffix()));
        if !series.measured.is_empty() {
            head.push(format!("{} ✓{}", series.name, unit.suffix()));
        }
    }
    let value = |y: Option<f64>| y.map_or_else(String::new, |y| words(unit, y));
    let mut lengths = chart.values();
    lengths.extend(chart.series.iter().flat_map(|s| s.measured.iter().map(|m| m.x)));
    sort_by(&mut lengths, f64::total_cmp);
    lengths.dedup();
    let rows = lengths.into_iter().map(|x| {
        let mut row = vec![words(Unit::Count, x)];
        for series in &chart.series {
            row.push(value(series.points.iter().find(|p| p.0 == x).and_then(|p| p.1)));
            if !series.measured.is_empty() {
                row.push(value(series.measured.iter().find(|m| m.x == x).map(|m| m.y)));
            }
        }
        row
    });
    Table {
        head,
        rows: rows.collect(),
    }
}

fn spoken(chart: &LineChart, length: u64) -> String {
    let at = length as f64;
    let mut words = vec![format!("{} {}", chart.x.title, Unit::Count.words(at))];
    for series in &chart.series {
        if let Some((_, Some(y))) = series.points.iter().find(|p| p.0 == at) {
            words.push(format!("{}: {}", series.name, chart.y.unit.words(*y)));
        }
    }
    words.join(", ")
}

fn memory_chart(i18n: Words, attention: Attention) -> LineChart {
    let value = |curve: &AttentionCurve| values(&curve.memory, |bytes| *bytes as f64);
    let point = |point: &MeasuredPoint| point.peak.map(|bytes| (bytes.get() as f64, None));
    let title = t_string!(i18n, attention.memory_axis).to_string();
    let mut chart = chart(i18n, attention, (Unit::Bytes, title), value, point);
    let card = attention.card.get().map(|card| Limit {
        y: card.usable().get() as f64,
        name: card.name.to_owned(),
    });
    chart.limits.extend(card);
    chart
}

fn time_chart(i18n: Words, attention: Attention) -> LineChart {
    let value = |curve: &AttentionCurve| values(&curve.time, |seconds| *seconds);
    let point = |point: &MeasuredPoint| {
        let range = point.time_range.map(|range| range.map(Seconds::get));
        point.time.map(|time| (time.get(), range))
    };
    let title = t_string!(i18n, attention.time_axis).to_string();
    chart(i18n, attention, (Unit::Seconds, title), value, point)
}

fn values<T>(points: &[(u64, Result<T, String>)], value: impl Fn(&T) -> f64) -> Values {
    points.iter().map(|(l, v)| (*l, v.as_ref().ok().map(&value))).collect()
}

/// A measured value and its range.
type Height = Option<(f64, Option<[f64; 2]>)>;

fn chart(
    i18n: Words,
    attention: Attention,
    (unit, title): (Unit, String),
    value: impl Fn(&AttentionCurve) -> Values,
    height: impl Fn(&MeasuredPoint) -> Height,
) -> LineChart {
    let [log_x, log_y] = [Key::LogX, Key::LogY].map(|key| Store::get().reading().with(|r| r.good.get(key) == "true"));
    let series = |algorithm: Algorithm| {
        let measured = attention.measured(algorithm).into_iter().filter_map(|point| {
            let (y, range) = height(&point)?;
            let x = point.length as f64;
            Some(Measured { x, y, range })
        });
        let points = attention
            .curve(algorithm)
            .map(|curve| value(&curve))
            .unwrap_or_default();
        Series {
            name: words::algorithm(i18n, algorithm),
            style: style(algorithm),
            points: points.into_iter().map(|(l, y)| (l as f64, y)).collect(),
            measured: measured.collect(),
        }
    };
    let all = attention.shown.get().into_iter().map(series);
    // An algorithm without any value gets no name beside the chart either.
    let series: Vec<Series> = all
        .filter(|s| !s.measured.is_empty() || s.points.iter().any(|p| p.1.is_some()))
        .collect();
    let heights = series.iter().flat_map(|s| {
        let curve = s.points.iter().filter_map(|p| p.1);
        curve.chain(s.measured.iter().map(|m| m.y)).collect::<Vec<_>>()
    });
    let y = Axis::over(unit, log_y, title, heights);
    let lengths = series
        .iter()
        .flat_map(|s| s.points.iter().map(|p| p.0))
        .collect::<Vec<_>>();
    let x = Axis::over(
        Unit::Count,
        log_x,
        t_string!(i18n, attention.length_axis).to_string(),
        lengths.iter().copied(),
    );
    let ends = lengths
        .iter()
        .copied()
        .fold((f64::INFINITY, 1.0), |(a, b), l| (f64::min(a, l), f64::max(b, l)));
    LineChart {
        x: if lengths.is_empty() { x } else { x.tight(ends.0, ends.1) },
        y,
        series,
        limits: Vec::new(),
        marks: Vec::new(),
        pointed: None,
    }
}
