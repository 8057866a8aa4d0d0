//! Legend of the attention charts.

use leptos::prelude::*;
use vramscope_engine::attention::Algorithm;
use vramscope_engine::format::grouped;
use vramscope_engine::units::{Bytes, Seconds};

use super::state::Attention;
use crate::charts::LineSwatch;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// Index of an algorithm's colour and dash pattern.
pub fn style(algorithm: Algorithm) -> usize {
    Algorithm::ALL.into_iter().position(|a| a == algorithm).unwrap_or(0)
}

/// Lists all algorithms with their line style, their figures at the current length, and a switch.
#[component]
pub fn Legend() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let title = move || {
        let length = grouped(attention.shown_length());
        t_string!(
            i18n,
            attention.formula_at,
            name = t_string!(i18n, attention.call).to_string(),
            length = length
        )
        .to_string()
    };
    let rows = Algorithm::ALL.map(|algorithm| view! { <Row algorithm /> });
    view! {
        <section class="card legend-card">
            <h2 data-testid="here" data-value=move || attention.shown_length().to_string()>
                {title}
            </h2>
            <table class="readout">
                <thead>
                    <tr>
                        <th scope="col">{t!(i18n, attention.curves)}</th>
                        <th scope="col">{t!(i18n, attention.memory_axis)}</th>
                        <th scope="col">{t!(i18n, attention.time_axis)}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </section>
    }
}

#[component]
fn Row(algorithm: Algorithm) -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let on = Memo::new(move |_| attention.shown.with(|shown| shown.contains(&algorithm)));
    let curve = Memo::new(move |_| attention.curve(algorithm));
    let memory = Memo::new(move |_| {
        let here = attention.shown_length();
        curve.with(|c| c.as_ref().and_then(|c| at(&c.memory, here)))
    });
    let time = Memo::new(move |_| {
        let here = attention.shown_length();
        curve.with(|c| c.as_ref().and_then(|c| at(&c.time, here)))
    });
    let shown = move |text: Option<Result<String, String>>| match text.filter(|_| on.get()) {
        Some(Ok(text)) => (text, None),
        Some(Err(why)) => (t_string!(i18n, attention.no_value).to_string(), Some(why)),
        None => (String::new(), None),
    };
    let bytes = move || shown(memory.get().map(|m| m.map(|b| Bytes::new(b).to_string())));
    let seconds = move || shown(time.get().map(|t| t.map(|s| Seconds::new(s).to_string())));
    view! {
        <tr class:readout-off=move || !on.get()>
            <th scope="row">
                <label class="readout-name">
                    <input
                        type="checkbox"
                        data-testid=format!("show-{}", algorithm.name())
                        prop:checked=on
                        on:change=move |_| toggle(attention, algorithm)
                    />
                    <LineSwatch style=style(algorithm) />
                    {move || words::algorithm(i18n, algorithm)}
                </label>
            </th>
            <td
                data-testid=format!("memory-{}", algorithm.name())
                data-value=move || memory.get().and_then(Result::ok).map(|b| b.to_string())
                title=move || bytes().1
            >
                {move || bytes().0}
            </td>
            <td
                data-testid=format!("time-{}", algorithm.name())
                data-value=move || time.get().and_then(Result::ok).map(|s| (s * 1e3).to_string())
                title=move || seconds().1
            >
                {move || seconds().0}
            </td>
        </tr>
    }
}

fn at<T: Clone>(points: &[(u64, T)], length: u64) -> Option<T> {
    points
        .iter()
        .find(|(l, _)| *l == length)
        .map(|(_, value)| value.clone())
}

fn toggle(attention: Attention, algorithm: Algorithm) {
    let mut shown = attention.shown.get_untracked();
    match shown.iter().position(|a| *a == algorithm) {
        Some(place) => drop(shown.remove(place)),
        None => shown.push(algorithm),
    }
    let kept = Algorithm::ALL.into_iter().filter(|a| shown.contains(a));
    let names: Vec<&str> = kept.map(Algorithm::name).collect();
    Store::get().set(Key::Algorithms, names.join(","));
}
