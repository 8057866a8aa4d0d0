//! Charts of kernel families over size, for all selected cards.

use leptos::prelude::*;
use vramscope_benchmark::{Family, Point, Topic, families};
use vramscope_engine::order::sort_by_key;

use super::page::{BenchmarksState, Shown};
use crate::charts::{Axis, ChartFrame, Figure, LineChart, LineSwatch, Lines, Measured, Palette, Series, Table, Unit};
use crate::i18n::{Words, t_string, use_i18n};
use crate::part::part;

/// Quantity on a chart's vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Height {
    Rate,
    Time,
    Memory,
}

impl Height {
    const ALL: [Self; 3] = [Self::Time, Self::Memory, Self::Rate];

    const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Time => "time",
            Self::Memory => "memory",
        }
    }

    fn words(self, i18n: Words) -> &'static str {
        match self {
            Self::Rate => t_string!(i18n, benchmarks.rate),
            Self::Time => t_string!(i18n, benchmarks.time),
            Self::Memory => t_string!(i18n, benchmarks.memory),
        }
    }

    fn unit(self, topic: Topic) -> Unit {
        match self {
            Self::Rate if topic.counts_operations() => Unit::FlopsPerSecond,
            Self::Rate => Unit::BytesPerSecond,
            Self::Time => Unit::Seconds,
            Self::Memory => Unit::Bytes,
        }
    }

    fn of(self, point: &Point) -> Option<f64> {
        match self {
            Self::Rate => point.rate,
            Self::Time => Some(point.time.get()),
            Self::Memory => point.extra.map(|bytes| bytes.get() as f64).filter(|bytes| *bytes > 0.0),
        }
    }

    fn range(self, point: &Point) -> Option<[f64; 2]> {
        (self == Self::Time).then(|| point.range.map(|time| time.get()))
    }
}

/// Chart of one family of kernels over size, with a curve per card.
#[component]
pub fn FamilyChart(
    /// Id by which tests and scripts find it.
    id: &'static str,
    /// Topics whose families can be selected.
    topics: &'static [Topic],
) -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let all = Memo::new(move |_| {
        let mut all = page.shown.with(|shown| families(&shown.plain()));
        all.retain(|family| topics.contains(&family.topic));
        all
    });
    let (wanted, height) = (RwSignal::new(String::new()), RwSignal::new(Height::Rate));
    let family = Memo::new(move |_| {
        let wanted = wanted.get();
        all.with(|all| {
            all.iter()
                .find(|f| f.kernel.label() == wanted)
                .or(most_shared(all))
                .cloned()
        })
    });
    let chart = Memo::new(move |_| {
        page.shown
            .with(|shown| family.with(|family| chart(i18n, shown, family.as_ref(), height.get())))
    });
    let (pointed, picked) = (RwSignal::new(None), RwSignal::new(None));
    let here = Signal::derive(move || pointed.get().or(picked.get()));
    let title = Signal::derive(move || title(i18n, id).to_owned());
    let rows = move |words: fn(Unit, f64) -> String| {
        page.shown
            .with(|shown| family.with(|family| table(i18n, shown, family.as_ref(), height.get(), words)))
    };
    let figure = Figure {
        id,
        title,
        stem: Signal::stored(format!("vramscope-{id}")),
        draw: Callback::new(move |surface| chart.with(|chart| chart.draw(surface, &Palette::read()))),
        shown: Callback::new(move |()| rows(Unit::words)),
        data: Callback::new(move |()| rows(Unit::exact)),
    };
    part(move || {
        family.with(Option::is_some).then(|| {
            view! {
                <ChartFrame figure>
                    <div class="chart-tools"><FamilyMenu id all family wanted /> <HeightMenu id height /></div>
                    <Lines
                        chart
                        pointed
                        resting=picked
                        on_pick=Callback::new(move |value| picked.set(Some(value)))
                        label=title
                        spoken=Signal::derive(move || spoken(&chart.get(), here.get()))
                        testid=slider(id)
                    />
                    <Readout chart here />
                </ChartFrame>
            }
            .into_any()
        })
    })
}

#[component]
fn FamilyMenu(
    id: &'static str,
    all: Memo<Vec<Family>>,
    family: Memo<Option<Family>>,
    wanted: RwSignal<String>,
) -> impl IntoView {
    let i18n = use_i18n();
    let name = |family: &Family| (family.kernel.label(), family.kernel.label());
    view! {
        <Menu
            testid=format!("{id}-family")
            label=Signal::derive(move || t_string!(i18n, benchmarks.kernel).to_string())
            choices=Signal::derive(move || all.with(|all| all.iter().map(name).collect()))
            used=Signal::derive(move || {
                family.with(|f| f.as_ref().map(|f| f.kernel.label()).unwrap_or_default())
            })
            choose=Callback::new(move |name| wanted.set(name))
        />
    }
}

#[component]
fn HeightMenu(id: &'static str, height: RwSignal<Height>) -> impl IntoView {
    let i18n = use_i18n();
    let name = move |height: Height| (height.name().to_owned(), height.words(i18n).to_owned());
    view! {
        <Menu
            testid=format!("{id}-height")
            label=Signal::derive(move || t_string!(i18n, benchmarks.shown).to_string())
            choices=Signal::derive(move || Height::ALL.map(name).to_vec())
            used=Signal::derive(move || height.get().name().to_owned())
            choose=Callback::new(move |name: String| {
                let named = Height::ALL.into_iter().find(|height| height.name() == name);
                height.set(named.unwrap_or(Height::Rate));
            })
        />
    }
}

fn title(i18n: Words, id: &str) -> &'static str {
    match id {
        "products" => t_string!(i18n, benchmarks.products),
        "attention" => t_string!(i18n, benchmarks.attention),
        _ => t_string!(i18n, benchmarks.bandwidth),
    }
}

fn slider(id: &str) -> &'static str {
    match id {
        "products" => "products-slider",
        "attention" => "attention-slider",
        _ => "bandwidth-slider",
    }
}

/// Returns the family measured on most cards; the first one on a tie.
fn most_shared(all: &[Family]) -> Option<&Family> {
    let cards = |family: &Family| family.curves.iter().filter(|curve| !curve.is_empty()).count();
    let most = all.iter().map(cards).max()?;
    all.iter().find(|family| cards(family) == most)
}

fn chart(i18n: Words, shown: &Shown, family: Option<&Family>, height: Height) -> LineChart {
    let topic = family.map_or(Topic::Products, |family| family.topic);
    let curves = family.map(|family| family.curves.as_slice()).unwrap_or_default();
    let mut series = Vec::new();
    for (style, curve) in curves.iter().enumerate() {
        let placed: Vec<(f64, f64, &Point)> = curve
            .iter()
            .filter_map(|point| Some((point.size as f64, height.of(point)?, point)))
            .collect();
        if placed.is_empty() {
            continue;
        }
        // Matrix products of all shapes scatter, so the line connects the square ones only.
        let is_square = |point: &Point| point.product.is_none_or(|[m, n, k]| m == n && n == k);
        let mut line: Vec<_> = placed.iter().filter(|(.., point)| is_square(point)).collect();
        if line.len() < 2 {
            line = placed.iter().collect();
        }
        let mut points: Vec<(f64, Option<f64>)> = line.into_iter().map(|(x, y, _)| (*x, Some(*y))).collect();
        points.dedup_by_key(|point| point.0);
        let measured = placed.iter().map(|(x, y, point)| Measured {
            x: *x,
            y: *y,
            range: height.range(point),
        });
        series.push(Series {
            name: shown.names.get(style).cloned().unwrap_or_default(),
            style,
            points,
            measured: measured.collect(),
        });
    }
    let all: Vec<(f64, f64)> = series
        .iter()
        .flat_map(|s| s.measured.iter().map(|m| (m.x, m.y)))
        .collect();
    let (unit, below) = match topic {
        Topic::Products => (Unit::Flops, t_string!(i18n, benchmarks.operations)),
        Topic::Attention => (Unit::Count, t_string!(i18n, benchmarks.length)),
        Topic::Copies | Topic::Passes | Topic::Collectives => (Unit::Bytes, t_string!(i18n, benchmarks.bytes)),
    };
    let side = match height.unit(topic) {
        Unit::FlopsPerSecond => t_string!(i18n, benchmarks.reached),
        Unit::BytesPerSecond => t_string!(i18n, benchmarks.bytes_per_second),
        _ => height.words(i18n),
    };
    LineChart {
        x: Axis::over(unit, true, below.to_owned(), all.iter().map(|point| point.0)),
        y: Axis::over(
            height.unit(topic),
            true,
            side.to_owned(),
            all.iter().map(|point| point.1),
        ),
        series,
        limits: Vec::new(),
        marks: Vec::new(),
        pointed: None,
    }
}

/// Builds the data table: a row per size, a column per card.
fn table(i18n: Words, shown: &Shown, family: Option<&Family>, height: Height, words: fn(Unit, f64) -> String) -> Table {
    let Some(family) = family else {
        return Table::default();
    };
    let unit = height.unit(family.topic);
    let mut head = vec![t_string!(i18n, benchmarks.size).to_owned()];
    head.extend(shown.names.iter().map(|name| format!("{name}{}", unit.suffix())));
    let size = |point: &Point| match point.product {
        Some([m, n, k]) => format!("{m} × {n} × {k}"),
        None if family.topic == Topic::Attention => words(Unit::Count, point.size as f64),
        None => words(Unit::Bytes, point.size as f64),
    };
    let mut rows: Vec<(u64, String, Vec<String>)> = Vec::new();
    for (i, curve) in family.curves.iter().enumerate() {
        for point in curve {
            let name = size(point);
            let place = rows.iter().position(|row| row.1 == name).unwrap_or_else(|| {
                rows.push((point.size, name, vec![String::new(); family.curves.len()]));
                rows.len() - 1
            });
            rows[place].2[i] = height.of(point).map_or_else(String::new, |value| words(unit, value));
        }
    }
    sort_by_key(&mut rows, |row| row.0);
    let row = |(_, name, cells): (u64, String, Vec<String>)| [vec![name], cells].concat();
    Table {
        head,
        rows: rows.into_iter().map(row).collect(),
    }
}

/// Accessible text of the values at a point of the chart.
pub fn spoken(chart: &LineChart, here: Option<f64>) -> String {
    let Some(here) = here else { return String::new() };
    let mut words = vec![chart.x.unit.words(here)];
    for series in &chart.series {
        words.extend(at(series, here).map(|y| format!("{}: {}", series.name, chart.y.unit.words(y))));
    }
    words.join(", ")
}

fn at(series: &Series, here: f64) -> Option<f64> {
    series.points.iter().find(|point| point.0 == here)?.1
}

/// Names of the curves, with their values at the current point.
#[component]
pub fn Readout(chart: Memo<LineChart>, here: Signal<Option<f64>>) -> impl IntoView {
    let rows = move || {
        chart.with(|chart| {
            let rows: Vec<_> = chart
                .series
                .iter()
                .map(|series| {
                    let value = here.get().and_then(|here| at(series, here));
                    view! {
                        <div>
                            <dt>
                                <LineSwatch style=series.style />
                                {series.name.clone()}
                            </dt>
                            <dd>{value.map(|y| chart.y.unit.words(y))}</dd>
                        </div>
                    }
                })
                .collect();
            let place = here
                .get()
                .map(|x| view! { <div><dt>{chart.x.unit.words(x)}</dt><dd></dd></div> });
            Some(view! { {place} {rows} }.into_any())
        })
    };
    view! { <dl class="sweep-readout bench-readout">{part(rows)}</dl> }
}

/// A menu whose selection is not stored in the URL.
#[component]
pub fn Menu(
    /// Id by which tests and scripts find it.
    #[prop(into)]
    testid: String,
    /// Label of the menu.
    label: Signal<String>,
    /// Value and text of each choice.
    choices: Signal<Vec<(String, String)>>,
    /// Value of the current choice.
    used: Signal<String>,
    /// Called with the value of a new choice.
    choose: Callback<String>,
) -> impl IntoView {
    let options = part(move || {
        let used = used.get();
        let options: Vec<_> = choices
            .get()
            .into_iter()
            .map(|(name, words)| {
                let on = name == used;
                view! { <option value=name selected=on>{words}</option> }
            })
            .collect();
        Some(options.into_any())
    });
    view! {
        <label class="bench-menu">
            <span class="muted small">{move || label.get()}</span>
            <select data-testid=testid on:change:target=move |ev| choose.run(ev.target().value())>
                {options}
            </select>
        </label>
    }
}
