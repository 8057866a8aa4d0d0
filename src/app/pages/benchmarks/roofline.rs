//! Roofline chart of the measured kernels.

use leptos::prelude::*;
use vramscope_benchmark::{Dot, Precision, Reach, Record};
use vramscope_engine::device::Device;
use vramscope_engine::order::sort_by;

use super::cards::PRECISIONS;
use super::curves::{Menu, Readout};
use super::page::{BenchmarksState, Shown};
use crate::charts::{Axis, ChartFrame, Figure, Limit, LineChart, Lines, Measured, Palette, Series, Table, Unit};
use crate::i18n::{Words, t, t_string, use_i18n};

/// Minimum range of the horizontal axis, in operations per byte; kernels outside extend it.
const ENDS: [f64; 2] = [0.125, 4096.0];
/// Ratio between neighbouring points of a roof: four per doubling.
const STEP: f64 = 1.189_207_115_002_721;

/// Chart of all kernels of a data type below the measured roof of each card.
#[component]
pub fn Roofline() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let wanted = RwSignal::new(String::new());
    let precisions = Memo::new(move |_| page.shown.with(precisions));
    let precision = Memo::new(move |_| {
        let (all, wanted) = (precisions.get(), wanted.get());
        all.iter()
            .copied()
            .find(|p| p.name() == wanted)
            .or(all.first().copied())
    });
    let chart = Memo::new(move |_| page.shown.with(|shown| chart(i18n, shown, precision.get())));
    let (pointed, picked) = (RwSignal::new(None), RwSignal::new(None));
    let title = Signal::derive(move || t_string!(i18n, benchmarks.roofline).to_string());
    let figure = Figure {
        id: "bench-roofline",
        title,
        stem: Signal::stored("vramscope-roofline".to_owned()),
        draw: Callback::new(move |surface| chart.with(|chart| chart.draw(surface, &Palette::read()))),
        shown: Callback::new(move |()| {
            page.shown
                .with(|shown| table(i18n, shown, precision.get(), Unit::words))
        }),
        data: Callback::new(move |()| {
            page.shown
                .with(|shown| table(i18n, shown, precision.get(), Unit::exact))
        }),
    };
    let choices = move || {
        let name = |p: Precision| (p.name().to_owned(), p.name().to_owned());
        precisions.get().into_iter().map(name).collect()
    };
    let here = Signal::derive(move || pointed.get().or(picked.get()));
    view! {
        <ChartFrame figure>
            <p class="muted small">{t!(i18n, benchmarks.roofline_explain)}</p>
            <div class="chart-tools">
                <Menu
                    testid="bench-precision"
                    label=Signal::derive(move || t_string!(i18n, benchmarks.precision).to_string())
                    choices=Signal::derive(choices)
                    used=Signal::derive(move || precision.get().map(|p| p.name().to_owned()).unwrap_or_default())
                    choose=Callback::new(move |name| wanted.set(name))
                />
            </div>
            <Lines
                chart
                pointed
                resting=picked
                on_pick=Callback::new(move |value| picked.set(Some(value)))
                label=title
                spoken=Signal::derive(move || super::curves::spoken(&chart.get(), here.get()))
                testid="bench-roofline-slider"
            />
            <Readout chart here />
        </ChartFrame>
    }
}

fn precisions(shown: &Shown) -> Vec<Precision> {
    let reach: Vec<Reach> = shown.plain().into_iter().map(Reach::of).collect();
    let has = |precision: &Precision| reach.iter().any(|reach| reach.product(*precision).is_some());
    PRECISIONS.into_iter().filter(has).collect()
}

fn chart(i18n: Words, shown: &Shown, precision: Option<Precision>) -> LineChart {
    let mut limits: Vec<Limit> = Vec::new();
    let mut records: Vec<(Reach, Vec<Dot>)> = Vec::new();
    if let Some(precision) = precision {
        for record in shown.plain() {
            records.push((Reach::of(record), record.dots(precision)));
            let limit = limit(i18n, record, precision);
            limits.extend(limit.filter(|limit| !limits.contains(limit)));
        }
    }
    let dots = records.iter().flat_map(|(_, dots)| dots);
    let [begin, end] = dots.filter(|dot| dot.intensity > 0.0).fold(ENDS, |[begin, end], dot| {
        [begin.min(dot.intensity), end.max(dot.intensity)]
    });
    let at = points(begin, end);
    let series: Vec<Series> = records
        .into_iter()
        .enumerate()
        .map(|(style, (reach, dots))| {
            let roof = |x: &f64| (*x, precision.and_then(|precision| reach.roof(precision, *x)));
            let measured = dots.into_iter().map(|dot| Measured {
                x: dot.intensity,
                y: dot.rate,
                range: None,
            });
            Series {
                name: shown.names[style].clone(),
                style,
                points: at.iter().map(roof).collect(),
                measured: measured.collect(),
            }
        })
        .collect();
    let heights = series.iter().flat_map(|s| {
        let roof = s.points.iter().filter_map(|point| point.1);
        roof.chain(s.measured.iter().map(|m| m.y)).collect::<Vec<_>>()
    });
    let heights: Vec<f64> = heights.chain(limits.iter().map(|limit| limit.y)).collect();
    let intensity = t_string!(i18n, benchmarks.intensity).to_owned();
    let reached = t_string!(i18n, benchmarks.reached).to_owned();
    LineChart {
        x: Axis::over(Unit::Intensity, true, intensity, at.iter().copied()).tight(begin, end),
        y: Axis::over(Unit::FlopsPerSecond, true, reached, heights),
        series,
        limits,
        marks: Vec::new(),
        pointed: None,
    }
}

/// The peak that the data sheet of a record's card states.
fn limit(i18n: Words, record: &Record, precision: Precision) -> Option<Limit> {
    let card = Device::by_name(&record.device.name).ok()?;
    let peak = precision.peak(&card.peak_tflops)?;
    Some(Limit {
        y: peak * 1e12,
        name: t_string!(i18n, benchmarks.sheet_of, name = card.name),
    })
}

/// Places at which a roof is drawn.
fn points(begin: f64, end: f64) -> Vec<f64> {
    let mut at = Vec::new();
    let mut x = begin;
    while x < end {
        at.push(x);
        x *= STEP;
    }
    at.push(end);
    at
}

/// Builds the data table: a row per kernel with its operations per byte and the rate on each card.
fn table(i18n: Words, shown: &Shown, precision: Option<Precision>, words: fn(Unit, f64) -> String) -> Table {
    let Some(precision) = precision else {
        return Table::default();
    };
    let intensity = format!("{}{}", t_string!(i18n, benchmarks.intensity), Unit::Intensity.suffix());
    let mut head = vec![t_string!(i18n, benchmarks.kernel).to_owned(), intensity];
    let rate = |name: &String| format!("{name}{}", Unit::FlopsPerSecond.suffix());
    head.extend(shown.names.iter().map(rate));
    let records = shown.plain();
    let mut rows: Vec<(String, f64, Vec<Option<f64>>)> = Vec::new();
    for (i, record) in records.iter().enumerate() {
        for dot in record.dots(precision) {
            let name = dot.kernel.label();
            let place = rows.iter().position(|row| row.0 == name).unwrap_or_else(|| {
                rows.push((name, dot.intensity, vec![None; records.len()]));
                rows.len() - 1
            });
            rows[place].2[i] = Some(dot.rate);
        }
    }
    sort_by(&mut rows, |a, b| a.1.total_cmp(&b.1));
    let rows = rows.into_iter().map(|(name, intensity, rates)| {
        let mut row = vec![name, words(Unit::Intensity, intensity)];
        let rate = |rate: Option<f64>| rate.map_or_else(String::new, |rate| words(Unit::FlopsPerSecond, rate));
        row.extend(rates.into_iter().map(rate));
        row
    });
    Table {
        head,
        rows: rows.collect(),
    }
}
