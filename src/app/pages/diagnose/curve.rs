use leptos::prelude::*;

use super::finding::place;
use super::reader::Recording;
use crate::i18n::{t_string, use_i18n};

/// Extents of the drawing.
const SIDES: (f64, f64) = (800.0, 200.0);

/// Live memory over a recording, stacked by category.
#[component]
pub fn Curve(recording: Recording) -> impl IntoView {
    let i18n = use_i18n();
    let totals = recording.columns.iter().map(|column| column.iter().sum::<f64>());
    let most = totals.fold(1.0, f64::max);
    let step = SIDES.0 / recording.columns.len().max(1) as f64;
    let areas: Vec<_> = (0..recording.categories.len())
        .map(|category| {
            // From the top of this category down to the top of the one below.
            let top = |column: &Vec<f64>, upto: usize| SIDES.1 * (1.0 - column.iter().take(upto).sum::<f64>() / most);
            let mut path = String::from("M");
            for (i, column) in recording.columns.iter().enumerate() {
                let (x, y) = (i as f64 * step, top(column, category + 1));
                path += &format!("{x:.1} {y:.1} {:.1} {y:.1} ", x + step);
            }
            for (i, column) in recording.columns.iter().enumerate().rev() {
                let (x, y) = (i as f64 * step, top(column, category));
                path += &format!("{:.1} {y:.1} {x:.1} {y:.1} ", x + step);
            }
            view! { <path class=format!("diagnose-{}", recording.categories[category]) d=path + "Z" /> }
        })
        .collect();
    let legend: Vec<_> = recording
        .categories
        .iter()
        .enumerate()
        .filter(|(i, _)| {
            recording
                .columns
                .iter()
                .any(|column| column.get(*i).is_some_and(|bytes| *bytes > 0.0))
        })
        .map(|(_, name)| {
            let key = format!("c_{}", name.replace('-', "_"));
            let words =
                crate::part::text(move || place(&key).map_or_else(String::new, |at| i18n.phrase(at).to_owned()));
            view! {
                <li>
                    <span class=format!("diagnose-key diagnose-{name}") aria-hidden="true"></span>
                    {words}
                </li>
            }
        })
        .collect();
    let title = move || {
        let (device, events) = (recording.device.to_string(), recording.events.to_string());
        let peak = format!("{:.2} GiB", recording.peak / f64::from(1 << 30));
        t_string!(i18n, diagnose.recording, device = device, events = events, peak = peak).to_string()
    };
    view! {
        <section class="card">
            <h2>{title}</h2>
            <svg
                class="diagnose-curve"
                viewBox=format!("0 0 {} {}", SIDES.0, SIDES.1)
                preserveAspectRatio="none"
                aria-hidden="true"
                data-testid="recording"
            >
                {areas}
            </svg>
            <ul class="diagnose-legend small">{legend}</ul>
        </section>
    }
}
