use leptos::prelude::*;

use super::reader::Reader;
use crate::i18n::{t, t_string, use_i18n};

/// A box to paste into, a place to drop files, and a button to open some.
#[component]
pub fn Input() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::get();
    let (text, over) = (RwSignal::new(String::new()), RwSignal::new(false));
    let take = move |files: Option<web_sys::FileList>| {
        let files = files.map(|files| js_sys::Array::from(&files)).unwrap_or_default();
        if files.length() > 0 {
            reader.read(&files, "");
        }
    };
    let drop = move |event: web_sys::DragEvent| {
        event.prevent_default();
        over.set(false);
        take(event.data_transfer().and_then(|data| data.files()));
    };
    let open = move |input: web_sys::HtmlInputElement| {
        take(input.files());
        // So that the same file can be opened again.
        input.set_value("");
    };
    let go = move |_| {
        let text = text.get_untracked();
        if !text.trim().is_empty() {
            reader.read(&js_sys::Array::new(), &text);
        }
    };
    view! {
        <section
            class="card diagnose-input"
            class:config-over=over
            on:dragover=move |event: web_sys::DragEvent| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=drop
        >
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
                <label class="tool open-file">
                    {t!(i18n, diagnose.open)}
                    <input
                        class="offscreen"
                        type="file"
                        multiple
                        data-testid="diagnose-files"
                        on:change:target=move |ev| open(ev.target())
                    />
                </label>
            </div>
        </section>
    }
}
