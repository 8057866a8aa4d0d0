//! Input of the diagnosis.

use gloo_file::File;
use leptos::prelude::*;

use super::reader::Reader;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::{Diagnosed, Given};
use crate::widgets::{Intake, OpenFiles, dropped};

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

/// Text box, drop area, file button and examples for the input.
#[component]
pub fn Input() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let (given, intake) = (Given::get(), Intake::get());
    let text = given.log;
    // Also what was given elsewhere, and the input from before the page was left: a finding's link to the course would
    // lose it otherwise.
    Effect::new(move || {
        given.diagnosed.with(|input| {
            if let Some(Diagnosed { files, text }) = input {
                let files = files.iter().map(AsRef::<web_sys::File>::as_ref).collect();
                reader.read(&files, text);
            }
        });
    });
    let take = Callback::new(move |files: Vec<File>| {
        if !files.is_empty() {
            let text = String::new();
            given.diagnosed.set(Some(Diagnosed { files, text }));
        }
    });
    let go = move |_| {
        let text = text.get_untracked();
        if !text.trim().is_empty() {
            let files = Vec::new();
            given.diagnosed.set(Some(Diagnosed { files, text }));
        }
    };
    let try_out = Callback::new(move |text: String| intake.diagnose(Vec::new(), text));
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
                <button type="button" class="primary" data-testid="diagnose-go" on:click=go>
                    {t!(i18n, diagnose.go)}
                </button>
                <OpenFiles label=t!(i18n, diagnose.open).into_any() testid="diagnose-files" multiple=true take />
            </div>
            <Examples take=try_out />
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
