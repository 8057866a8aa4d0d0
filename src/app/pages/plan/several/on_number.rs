//! A setup on one number of GPUs.

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::Part;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;

use crate::charts::{Bar, Segment, part_class};
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::pages::plan::verdict::Icon;
use crate::part::text;
use crate::shell::Store;
use crate::state::{Key, Reading, world};
use crate::words;
use crate::worker::several::OnNumber;
use crate::worker::view::Summary;

/// A button that takes this number of GPUs, with what each of them needs.
#[component]
pub fn Card(
    /// The number, and what was found.
    on: OnNumber,
    /// Most that any number needs, the scale of the bars.
    most: Option<Bytes>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let OnNumber {
        gpus,
        other,
        entries,
        found,
    } = on;
    let is_taken = Memo::new(move |_| {
        let is_on =
            |r: &Reading| world(&r.good) == gpus && other.is_none_or(|other| r.good.get(Key::Strategy) == other.name());
        store.reading().with(is_on)
    });
    let title_words = move || match other {
        Some(strategy) => words::choice(i18n, Key::Strategy, strategy.name()),
        None => name(i18n, gpus),
    };
    let testid = if other.is_some() { "on-strategy" } else { "on-number" };
    let data_name = other.map_or_else(|| gpus.to_string(), |strategy| strategy.name().to_owned());
    let take = move |_| {
        store.edit(|draft| draft.take(&entries, Key::shares));
    };
    let needed = found.as_ref().ok().map(Summary::needed);
    let (body, title) = match &found {
        Ok(summary) => (needs(i18n, gpus, summary, most), None),
        Err(why) => (
            view! { <span class="muted">{t!(i18n, several.refused)}</span> }.into_any(),
            Some(words::refusal(i18n, why)),
        ),
    };
    view! {
        <button
            type="button"
            class="on-number"
            data-testid=testid
            data-name=data_name
            data-value=needed.map(|bytes| bytes.get().to_string())
            aria-pressed=text(move || is_taken.get().to_string())
            disabled=found.is_err()
            title=title
            on:click=take
        >
            <span class="on-number-name">{title_words()}</span>
            {body}
        </button>
    }
}

fn name(i18n: Words, gpus: u64) -> String {
    match gpus {
        1 => t_string!(i18n, several.one).to_owned(),
        gpus => t_string!(i18n, several.many, n = gpus.to_string()),
    }
}

/// Memory that each GPU needs, with its fit on the card.
fn needs(i18n: Words, gpus: u64, summary: &Summary, most: Option<Bytes>) -> AnyView {
    let room = summary.card.as_ref().map_or(Bytes::ZERO, |card| card.fit.room);
    let scale = most.unwrap_or(Bytes::ZERO).max(room).get().max(1) as f64;
    let segment = |(part, bytes): &(Part, Bytes)| Segment {
        class: part_class(*part),
        share: bytes.get() as f64 / scale,
        title: format!("{}: {}", words::part(i18n, *part), gib(*bytes)),
    };
    let segments: Vec<Segment> = summary.parts.iter().map(segment).collect();
    let limit = (room > Bytes::ZERO).then(|| {
        let place = format!("{:.4}%", 100.0 * room.get() as f64 / scale);
        view! { <span class="on-number-limit" style:left=place aria-hidden="true"></span> }
    });
    let fit = summary.card.as_ref().ok().map(|card| {
        let verdict = card.fit.verdict;
        view! {
            <span class=format!("on-number-fit {}", card.colour(verdict))>
                <Icon verdict />
                {word(i18n, verdict)}
            </span>
        }
    });
    view! {
        <span class="on-number-needed">
            <strong>{gib(summary.needed())}</strong>
            {(gpus != 1).then(|| view! { <span class="muted small">{t!(i18n, several.each)}</span> })}
        </span>
        <span class="on-number-bar">
            <Bar segments />
            {limit}
        </span>
        {fit}
    }
    .into_any()
}

fn word(i18n: Words, verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => t_string!(i18n, several.fits),
        Verdict::Tight => t_string!(i18n, several.tight),
        Verdict::Oom => t_string!(i18n, several.oom),
    }
}
