//! Input of the diagnosis.

use gloo_file::File;
use leptos::prelude::*;

use super::reader::Reader;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{Diagnosed, Given};
use crate::widgets::{OpenFiles, dropped};

/// Text box, drop area and file button for the input.
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
    let go = move |_| {
        let text = text.get_untracked();
        if !text.trim().is_empty() {
            let files = Vec::new();
            read(Diagnosed { files, text });
        }
    };
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
                <button type="button" class="tool" data-testid="diagnose-go" on:click=go>
                    {t!(i18n, diagnose.go)}
                </button>
                <OpenFiles label=t!(i18n, diagnose.open).into_any() testid="diagnose-files" multiple=true take />
            </div>
        </section>
    }
}
