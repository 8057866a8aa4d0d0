use leptos::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::desk::Desk;
use crate::i18n::{t, use_i18n};

/// A card of the page that takes files: dropped onto it, or opened.
#[component]
pub fn Disk(children: Children) -> impl IntoView {
    let i18n = use_i18n();
    let desk = Desk::get();
    let over = RwSignal::new(false);
    let read = move |files: Option<web_sys::FileList>| {
        desk.failed.set(Vec::new());
        let files = files.map(|files| js_sys::Array::from(&files)).unwrap_or_default();
        for file in files {
            let file: web_sys::File = wasm_bindgen::JsCast::unchecked_into(file);
            leptos::task::spawn_local(async move {
                // A file that cannot be read comes out empty, which is no record.
                let text = JsFuture::from(file.text()).await.ok().and_then(|t| t.as_string());
                desk.take(file.name(), &text.unwrap_or_default());
            });
        }
    };
    let open = move |input: web_sys::HtmlInputElement| {
        read(input.files());
        // So that the same file can be opened again.
        input.set_value("");
    };
    view! {
        <section
            class="card bench-records"
            class:record-over=over
            on:dragover=move |event: web_sys::DragEvent| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=move |event: web_sys::DragEvent| {
                event.prevent_default();
                over.set(false);
                read(event.data_transfer().and_then(|data| data.files()));
            }
        >
            {children()}
            <div class="record-tools">
                <label class="tool open-file">
                    {t!(i18n, benchmarks.open)}
                    <input
                        class="offscreen"
                        type="file"
                        multiple
                        accept=".json,application/json"
                        data-testid="bench-files"
                        on:change:target=move |ev| open(ev.target())
                    />
                </label>
                <span class="muted small">{t!(i18n, benchmarks.drop)}</span>
            </div>
            <Failed />
        </section>
    }
}

/// Files and records that could not be read or had, with the reason.
#[component]
fn Failed() -> impl IntoView {
    let desk = Desk::get();
    let lines = crate::part::part(move || {
        let all = desk.failed.get();
        let lines: Vec<_> = all
            .into_iter()
            .map(|(name, why)| view! { <p class="field-error">{format!("{name}: {why}")}</p> })
            .collect();
        (!lines.is_empty()).then(|| lines.into_any())
    });
    view! {
        <div role="alert" data-testid="bench-failed">
            {lines}
        </div>
    }
}
