//! Segments of the allocator with their holes.

use leptos::prelude::*;

use super::answer_data::Recording;
use super::recording::bytes;
use crate::i18n::{t_string, use_i18n};

/// Draws the segments with their holes, largest first, on one scale.
#[component]
pub fn Segments(recording: Recording) -> impl IntoView {
    let i18n = use_i18n();
    let Recording {
        segments,
        segment_count,
        reserved,
        ..
    } = recording;
    if segments.is_empty() {
        return ().into_any();
    }
    let (count, shown) = (segment_count.to_string(), segments.len().to_string());
    let largest = segments.first().map_or(1.0, |segment| segment.size).max(1.0);
    let bars: Vec<_> = segments
        .into_iter()
        .map(|segment| {
            let words = move || {
                let [size, held, hole] = [segment.size, segment.live, segment.largest_hole].map(bytes);
                t_string!(i18n, diagnose.segment, bytes = size, held = held, hole = hole)
            };
            let held: String = segment
                .held
                .iter()
                .map(|(at, len)| format!("<rect x=\"{at}\" width=\"{len}\" height=\"10\"/>"))
                .collect();
            let width = format!("{:.2}%", 100.0 * segment.size / largest);
            view! {
                <li data-testid="segment" title=words>
                    <svg class="diagnose-segment" style:width=width viewBox="0 0 1000 10" preserveAspectRatio="none"
                        role="img" aria-label=words inner_html=held></svg>
                </li>
            }
        })
        .collect();
    let title = move || t_string!(i18n, diagnose.segments, count = count.clone(), bytes = bytes(reserved));
    let explain = move || t_string!(i18n, diagnose.segments_explain, count = shown.clone());
    view! {
        <section class="card" data-testid="segments">
            <h2>{title}</h2>
            <p class="muted small">{explain}</p>
            <ul class="diagnose-segments">{bars}</ul>
        </section>
    }
    .into_any()
}
