//! The first thing on the page: one field that takes everything, and examples for a visit that begins without a setup.

use leptos::ev::SubmitEvent;
use leptos::html;
use leptos::prelude::*;
use vramscope_engine::Model;
use vramscope_engine::setup::Setting;
use vramscope_intake::Kind;
use web_sys::ClipboardEvent;

use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{RawInput, Store};
use crate::state::{Draft, Key, Reading, grouped, rank, without_host};
use crate::widgets::{Intake, OpenFiles};
use crate::words;

/// Setups that people come with: one that runs out of memory, one of several ways to fit, one that fits.
const EXAMPLES: [&[(Key, &str)]; 3] = [
    &[
        (Key::Model, "qwen2.5-vl-7b"),
        (Key::Gpu, "RTX 4090"),
        (Key::Setting(Setting::Seq), "4096"),
        (Key::Setting(Setting::Freeze), "lora"),
        (Key::Setting(Setting::Rank), "16"),
    ],
    &[
        (Key::Model, "llama3.1-8b"),
        (Key::Gpu, "A100 80GB SXM"),
        (Key::Setting(Setting::Freeze), "none"),
        (Key::Setting(Setting::Ckpt), "full"),
    ],
    &[
        (Key::Model, "qwen2.5-vl-3b"),
        (Key::Gpu, "RTX 4070"),
        (Key::Setting(Setting::Freeze), "qlora"),
        (Key::Setting(Setting::Precision), "amp-bf16"),
        (Key::Setting(Setting::Ckpt), "full"),
    ],
];

/// The question that the page answers, the field, and three examples; of a visit with a setup, the field alone.
#[component]
pub fn Intro() -> impl IntoView {
    let i18n = use_i18n();
    // Stays for the visit: what disappears at the first change would move the control under the pointer.
    let is_new = Store::get().is_new();
    let question = is_new.then(|| view! { <h2 class="hero-title">{t!(i18n, intake.title)}</h2> });
    let examples = is_new.then(|| {
        let examples = EXAMPLES.map(|entries| view! { <Example entries /> });
        view! {
            <div class="intro-examples">
                <span class="muted small">{t!(i18n, plan.examples)}</span>
                {examples}
            </div>
            <p class="muted small">{t!(i18n, plan.intro)}</p>
        }
    });
    view! {
        <section class="hero" class:hero-new=is_new aria-label=t!(i18n, plan.intro_label) data-testid="intro">
            {question}
            <IntakeField />
            {examples}
        </section>
    }
}

/// The field: what is pasted is taken at once, what is typed when it is whole.
#[component]
fn IntakeField() -> impl IntoView {
    let i18n = use_i18n();
    let intake = Intake::get();
    let field = NodeRef::<html::Input>::new();
    let clear = move || {
        if let Some(field) = field.get_untracked() {
            field.set_value("");
        }
    };
    let on_submit = move |event: SubmitEvent| {
        event.prevent_default();
        let Some(text) = field.get_untracked().map(|field| field.value()) else {
            return;
        };
        if text.trim().is_empty() {
            return;
        }
        clear();
        match (Kind::of_text(&text), named(&text)) {
            (Kind::Model(_) | Kind::Unknown, Some(name)) => intake.give(Kind::Model(name), RawInput::Text(text)),
            _ => intake.take_text(text),
        }
    };
    let on_paste = move |event: ClipboardEvent| {
        let text = event.clipboard_data().and_then(|data| data.get_data("text/plain").ok());
        let Some(text) = text else { return };
        let kind = Kind::of_text(&text);
        // Of a word that is none of them, more may be typed.
        if kind != Kind::Unknown {
            event.prevent_default();
            event.stop_propagation();
            clear();
            intake.give(kind, RawInput::Text(text));
        }
    };
    let names = Model::catalogue()
        .into_iter()
        .map(|name| view! { <option value=name></option> });
    let names: Vec<_> = names.collect();
    view! {
        <form class="intake" role="search" on:submit=on_submit>
            <label class="offscreen" for="intake">
                {t!(i18n, intake.label)}
            </label>
            <input
                id="intake"
                type="text"
                list="intake-models"
                autocomplete="off"
                spellcheck="false"
                autocapitalize="off"
                data-testid="intake"
                node_ref=field
                placeholder=move || t_string!(i18n, intake.hint)
                on:paste=on_paste
            />
            <datalist id="intake-models">{names}</datalist>
            <button type="submit" class="tool" data-testid="intake-go">
                {t!(i18n, intake.go)}
            </button>
            <OpenFiles
                label=t!(i18n, intake.open).into_any()
                testid="intake-files"
                multiple=true
                take=Callback::new(move |files| intake.take_files(files))
            />
        </form>
    }
}

/// Name of the model that a few typed words mean: the catalogue's own, an id, or the nearest that has all of the words.
fn named(typed: &str) -> Option<String> {
    let name = without_host(typed);
    let catalogue = Model::catalogue();
    if name.contains('/') {
        return Some(name.to_owned());
    }
    if let Some(same) = catalogue.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Some((*same).to_owned());
    }
    let ranked = grouped(&catalogue).into_iter().filter_map(|model| {
        let rank = rank(name, &format!("{} {}", model.vendor, model.name))?;
        Some((rank, model.name.len(), model.name))
    });
    let best = ranked.min();
    // An unknown name stays as it is, so that what is said of it is about it.
    best.map(|(_, _, name)| name.to_owned())
        .or_else(|| matches!(Kind::of_text(name), Kind::Model(_)).then(|| name.to_owned()))
}

#[component]
fn Example(entries: &'static [(Key, &'static str)]) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let text = |wanted: Key| {
        let found = entries.iter().find(|(key, _)| *key == wanted);
        found.map_or("", |(_, text)| *text)
    };
    let freeze = Key::Setting(Setting::Freeze);
    let label = move || {
        let how = words::choice(i18n, freeze, text(freeze));
        t_string!(
            i18n,
            plan.example,
            model = text(Key::Model),
            how = how,
            card = text(Key::Gpu)
        )
        .to_string()
    };
    let show = move |_| {
        store.edit(|draft| {
            let decides = Reading::of(draft, &Draft::default()).entries();
            let keys: Vec<Key> = decides.entries().map(|(key, _)| key).collect();
            keys.into_iter().for_each(|key| draft.set(key, key.default_text()));
            entries.iter().for_each(|(key, text)| draft.set(*key, *text));
        });
    };
    view! {
        <button type="button" class="tool" data-testid="example" on:click=show>
            {crate::part::text(label)}
        </button>
    }
}
