//! Histogram of the lengths of a dataset, with its percentiles marked.

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use super::panel::PERCENTS;
use crate::i18n::{t_string, use_i18n};
use vramscope_dataset::Summary;

/// Height and width of the drawing area.
const SIZE: (f64, f64) = (120.0, 640.0);

/// Bars of lengths; the same numbers stand in the table beside them.
#[component]
pub fn Histogram(
    /// The lengths.
    of: Summary,
) -> impl IntoView {
    let i18n = use_i18n();
    let bins = of.histogram();
    let end = bins.last().map_or(1, |bin| bin.to) as f64;
    let most = bins.iter().map(|bin| bin.samples).max().unwrap_or(1).max(1) as f64;
    let (height, width) = SIZE;
    let across = |length: u64| length as f64 / end * width;
    let bars = bins.iter().map(|bin| {
        let tall = bin.samples as f64 / most * height;
        let (from, to) = (across(bin.from), across(bin.to));
        let title = format!("{}–{}: {}", grouped(bin.from), grouped(bin.to - 1), grouped(bin.samples as u64));
        view! {
            <rect x=format!("{:.2}", from + 0.5) y=format!("{:.2}", height - tall) width=format!("{:.2}", (to - from - 1.0).max(0.5)) height=format!("{tall:.2}")>
                <title>{title}</title>
            </rect>
        }
    });
    let marks = PERCENTS.iter().map(|(name, percent)| {
        let at = across(of.percentile(*percent));
        let place = format!("{:.2}%", at / width * 100.0);
        view! { <span class="dataset-mark" style:left=place>{*name}</span> }
    });
    let ticks = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| {
        let place = format!("{}%", share * 100.0);
        view! { <span style:left=place>{grouped((end * share) as u64)}</span> }
    });
    let name = t_string!(i18n, dataset.histogram);
    view! {
        <figure class="dataset-histogram" aria-label=name data-testid="dataset-histogram">
            <figcaption class="muted small">{name}</figcaption>
            <div class="dataset-plot" aria-hidden="true">
                <svg viewBox=format!("0 0 {width} {height}") preserveAspectRatio="none">
                    {bars.collect_view()}
                </svg>
                {marks.collect_view()}
            </div>
            <div class="dataset-ticks muted" aria-hidden="true">{ticks}</div>
        </figure>
    }
}
