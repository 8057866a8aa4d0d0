//! Input of the diagnosis.

use gloo_file::File;
use leptos::prelude::*;

use super::reader::Reader;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::{Diagnosed, Given};
use crate::widgets::{OpenFiles, dropped, follow_gifts};

/// A text to try.
struct Example {
    /// Name in the document, for tests.
    name: &'static str,
    /// Words of its button.
    label: fn(Words) -> &'static str,
    text: &'static str,
}

const EXAMPLES: [Example; 3] = [
    Example {
        name: "step",
        label: |i18n| t_string!(i18n, diagnose.example_step),
        text: include_str!("examples/step.txt"),
    },
    Example {
        name: "host",
        label: |i18n| t_string!(i18n, diagnose.example_host),
        text: include_str!("examples/host.txt"),
    },
    Example {
        name: "growth",
        label: |i18n| t_string!(i18n, diagnose.example_growth),
        text: include_str!("examples/growth.txt"),
    },
];

/// Text box, drop area, file button and examples for the input. What is pasted or dropped anywhere on the page is read too.
#[component]
pub fn Input() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let given = Given::get();
    let text = given.log;
    let read = move |input: Diagnosed| {
        let files = input.files.iter().map(AsRef::<web_sys::File>::as_ref).collect();
        reader.read(&files, &input.text);
        given.diagnosed.set(Some(input));
    };
    // Diagnose again the input from before the page was left: a finding's link to the course would lose it otherwise.
    if let Some(input) = given.diagnosed.get_untracked() {
        read(input);
    }
    let take = Callback::new(move |files: Vec<File>| {
        if !files.is_empty() {
            let text = String::new();
            read(Diagnosed { files, text });
        }
    });
    let go = move || {
        let text = text.get_untracked();
        let is_text = !text.trim().is_empty();
        if is_text {
            let files = Vec::new();
            read(Diagnosed { files, text });
        }
        is_text
    };
    let take_text = move |given: String| {
        text.set(given);
        go()
    };
    follow_gifts(take_text, take);
    view! {
        <section class="card diagnose-input" {..dropped(take)}>
            <h2>{t!(i18n, diagnose.title)}</h2>
            <p class="muted small" id="diagnose-explain">{t!(i18n, diagnose.explain)}</p>
            <textarea
                rows="8"
                spellcheck="false"
                autocomplete="off"
                data-testid="diagnose-text"
                aria-label=move || t_string!(i18n, diagnose.paste)
                aria-describedby="diagnose-explain"
                placeholder=move || t_string!(i18n, diagnose.paste)
                prop:value=text
                on:input:target=move |ev| text.set(ev.target().value())
            ></textarea>
            <div class="record-tools">
                <button type="button" class="tool" data-testid="diagnose-go" on:click=move |_| _ = go()>
                    {t!(i18n, diagnose.go)}
                </button>
                <OpenFiles label=t!(i18n, diagnose.open).into_any() testid="diagnose-files" multiple=true take />
            </div>
            <Examples take=Callback::new(move |text| _ = take_text(text)) />
        </section>
    }
}

/// Buttons that read an example each.
#[component]
fn Examples(take: Callback<String>) -> impl IntoView {
    let i18n = use_i18n();
    let buttons = EXAMPLES.map(|example| {
        view! {
            <button
                type="button"
                class="tool"
                data-testid="diagnose-example"
                data-name=example.name
                on:click=move |_| take.run(example.text.to_owned())
            >
                {move || (example.label)(i18n)}
            </button>
        }
    });
    view! {
        <p class="record-tools small">
            <span class="muted">{t!(i18n, diagnose.examples)}</span>
            {buttons.collect_view()}
        </p>
    }
}
