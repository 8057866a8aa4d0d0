//! Table that compares measured cards.

use leptos::prelude::*;
use vramscope_benchmark::{Precision, Reach, Record};
use vramscope_engine::device::Device;

use super::list::day;
use super::mine::Choose;
use super::page::{BenchmarksState, Held, Shown};
use crate::charts::{LineSwatch, Unit};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};

/// Data types in which matrix products are compared, in the order of the table.
pub const PRECISIONS: [Precision; 4] = [Precision::Bf16, Precision::Fp16, Precision::Tf32, Precision::Fp32];

/// A row of the table: name, and for each card the measured figure and that of its data sheet.
struct Line {
    testid: String,
    name: String,
    unit: Unit,
    cells: Vec<(Option<f64>, Option<f64>)>,
}

/// Table of the best rates that each card reached.
#[component]
pub fn Cards() -> impl IntoView {
    let i18n = use_i18n();
    let page = BenchmarksState::get();
    let table = move || {
        let shown = page.shown.get();
        let columns = shown.records.len();
        let heads: Vec<_> = (0..columns).map(|i| view! { <Head shown=shown.clone() i /> }).collect();
        let rows: Vec<_> = lines(i18n, &shown).into_iter().map(row).collect();
        let table = view! {
            <table class="compare-table bench-cards" style:--columns=columns.to_string()>
                <thead>
                    <tr>
                        <td></td>
                        {heads}
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        };
        Some(table.into_any())
    };
    view! {
        <section class="card" data-testid="bench-cards">
            <h2>{t!(i18n, benchmarks.cards)}</h2>
            <p class="muted small">{t!(i18n, benchmarks.cards_explain)}</p>
            <div
                class="compare-scroll"
                tabindex="0"
                role="region"
                aria-label=move || t_string!(i18n, benchmarks.cards)
            >
                {part(table)}
            </div>
        </section>
    }
}

#[component]
fn Head(shown: Shown, i: usize) -> impl IntoView {
    let i18n = use_i18n();
    let held: Held = shown.records[i].clone();
    let Record {
        device,
        date,
        conditions,
        ..
    } = &*held.record;
    let mut about: Vec<String> = date.iter().map(|date| day(date)).collect();
    about.push(device.backend.clone());
    about.extend(device.driver.clone());
    about.extend(device.libraries.iter().map(|l| format!("{} {}", l.name, l.version)));
    let warnings = conditions.warnings.join("; ");
    let has_warnings = !warnings.is_empty();
    let words = text(move || t_string!(i18n, benchmarks.warned, warnings = warnings.clone()).to_string());
    view! {
        <th scope="col" data-testid="bench-column" data-name=held.id.clone()>
            <span class="bench-name">
                <LineSwatch style=i />
                {shown.names[i].clone()}
            </span>
            <span class="muted small bench-about">{about.join(" · ")}</span>
            {has_warnings.then(|| view! { <span class="small bench-warned">{words}</span> })}
            <Choose held=held.clone() />
        </th>
    }
}

/// Rates that each card reached, beside its data sheet.
struct Columns(Vec<(Reach, Option<&'static Device>)>);

impl Columns {
    fn of(shown: &Shown) -> Self {
        let column = |record: &Record| (Reach::of(record), Device::by_name(&record.device.name).ok());
        Self(shown.plain().into_iter().map(column).collect())
    }

    fn line(
        &self,
        (testid, name): (&str, String),
        unit: Unit,
        figure: &dyn Fn(&Reach) -> Option<f64>,
        sheet: &dyn Fn(&Device) -> Option<f64>,
    ) -> Line {
        Line {
            testid: format!("reach-{testid}"),
            name,
            unit,
            cells: self
                .0
                .iter()
                .map(|(reach, card)| (figure(reach), card.and_then(sheet)))
                .collect(),
        }
    }
}

fn lines(i18n: Words, shown: &Shown) -> Vec<Line> {
    let columns = Columns::of(shown);
    let bytes = |rate: Option<vramscope_engine::units::Bandwidth>| rate.map(|rate| rate.as_gb_per_s() * 1e9);
    let peak = |card: &Device, precision: Precision| precision.peak(&card.peak_tflops).map(|peak| peak * 1e12);
    let memory = ("memory", t_string!(i18n, benchmarks.memory_rate).to_owned());
    let mut lines = vec![
        columns.line(memory, Unit::BytesPerSecond, &|reach| reach.memory, &|card| {
            bytes(card.bandwidth())
        }),
    ];
    for precision in PRECISIONS {
        let words = t_string!(i18n, benchmarks.product_rate, precision = precision.name());
        lines.push(columns.line(
            (precision.name(), words),
            Unit::FlopsPerSecond,
            &|reach| reach.product(precision),
            &|card| peak(card, precision),
        ));
    }
    for precision in PRECISIONS {
        let words = t_string!(i18n, benchmarks.attention_rate, precision = precision.name());
        lines.push(columns.line(
            (&format!("attention-{}", precision.name()), words),
            Unit::FlopsPerSecond,
            &|reach| {
                let mut rates = reach.attention.iter();
                rates.find(|(p, _)| *p == precision).map(|(_, rate)| *rate)
            },
            &|card| peak(card, precision),
        ));
    }
    let to_device = ("to-device", t_string!(i18n, benchmarks.to_device).to_owned());
    lines.push(
        columns.line(to_device, Unit::BytesPerSecond, &|reach| reach.to_device, &|card| {
            bytes(card.pcie())
        }),
    );
    let to_host = ("to-host", t_string!(i18n, benchmarks.to_host).to_owned());
    lines.push(
        columns.line(to_host, Unit::BytesPerSecond, &|reach| reach.to_host, &|card| {
            bytes(card.pcie())
        }),
    );
    let launch = ("launch", t_string!(i18n, benchmarks.launch).to_owned());
    let launch_time = |reach: &Reach| reach.launch.map(|time| time.get());
    lines.push(columns.line(launch, Unit::Seconds, &launch_time, &|_| None));
    // Drop rows without a value for any card.
    lines.retain(|line| line.cells.iter().any(|(figure, _)| figure.is_some()));
    lines
}

fn row(line: Line) -> impl IntoView + use<> {
    let i18n = use_i18n();
    let cells: Vec<_> = line
        .cells
        .into_iter()
        .enumerate()
        .map(|(i, (figure, sheet))| {
            let share = figure.zip(sheet).map(|(figure, sheet)| 100.0 * figure / sheet);
            let words = text(move || match (share, sheet) {
                (Some(share), Some(sheet)) => {
                    let (share, sheet) = (format!("{share:.0}"), line.unit.words(sheet));
                    t_string!(i18n, benchmarks.of_sheet, share = share, sheet = sheet).to_string()
                }
                _ => String::new(),
            });
            // The whole bar is the data sheet; where there is none, there is nothing to compare with.
            let bar = share.map(|share| {
                let width = format!("{:.1}%", share.min(100.0));
                view! {
                    <span class=format!("bench-bar series-{}", i + 1) aria-hidden="true">
                        <span style:width=width></span>
                    </span>
                }
            });
            view! {
                <td data-testid=line.testid.clone() data-value=figure.map(|figure| figure.to_string())>
                    <span class="bench-figure">{figure.map_or_else(|| "—".into(), |f| line.unit.words(f))}</span>
                    {bar}
                    <span class="muted small">{words}</span>
                </td>
            }
        })
        .collect();
    view! {
        <tr>
            <th scope="row">{line.name}</th>
            {cells}
        </tr>
    }
}
