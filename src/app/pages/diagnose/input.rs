//! Input of the diagnosis.

use gloo_file::File;
use leptos::prelude::*;

use super::reader::Reader;
use crate::i18n::{t, t_string, use_i18n};
use crate::widgets::{OpenFiles, dropped};

/// Text box, drop area and file button for the input.
#[component]
pub fn Input() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let text = RwSignal::new(String::new());
    let take = Callback::new(move |files: Vec<File>| {
        if !files.is_empty() {
            reader.read(&files.iter().map(AsRef::<web_sys::File>::as_ref).collect(), "");
        }
    });
    let go = move |_| {
        let text = text.get_untracked();
        if !text.trim().is_empty() {
            reader.read(&js_sys::Array::new(), &text);
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
