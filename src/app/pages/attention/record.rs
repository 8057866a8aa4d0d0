use leptos::prelude::*;
use vramscope_engine::attention::MeasuredPoint;
use wasm_bindgen_futures::JsFuture;

use super::state::Attention;
use crate::i18n::{t, t_string, use_i18n};

/// Opens a record of measured points, or takes a dropped one. It stays on this page.
#[component]
pub fn RecordEntry() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let (over, error) = (RwSignal::new(false), RwSignal::new(None::<String>));
    let take = move |name: String, text: &str| match MeasuredPoint::read(text) {
        Ok(points) => {
            error.set(None);
            attention.record.set(Some((name, points)));
        }
        Err(e) => error.set(Some(e.to_string())),
    };
    let read = move |file: web_sys::File| {
        let name = file.name();
        leptos::task::spawn_local(async move {
            // A file that cannot be read comes out empty, which is no record.
            let text = JsFuture::from(file.text()).await.ok().and_then(|t| t.as_string());
            take(name, &text.unwrap_or_default());
        });
    };
    let drop = move |event: web_sys::DragEvent| {
        event.prevent_default();
        over.set(false);
        let files = event.data_transfer().and_then(|data| data.files());
        files.and_then(|files| files.get(0)).into_iter().for_each(read);
    };
    let open = move |input: web_sys::HtmlInputElement| {
        input.files().and_then(|files| files.get(0)).into_iter().for_each(read);
        // So that the same file can be opened again.
        input.set_value("");
    };
    let state = move || match attention.record.get() {
        None => t_string!(i18n, attention.record_hint).to_string(),
        Some((name, points)) => {
            let shown = attention.shown.get().into_iter().map(|a| attention.measured(a).len());
            let shown = shown.sum::<usize>().to_string();
            let all = points.len().to_string();
            t_string!(i18n, attention.record_loaded, name = name, shown = shown, all = all).to_string()
        }
    };
    view! {
        <section
            class="group record"
            class:record-over=over
            on:dragover=move |event: web_sys::DragEvent| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=drop
        >
            <h2>{t!(i18n, attention.record)}</h2>
            <p class="muted small" role="status" data-testid="record-state">
                {state}
            </p>
            <div class="record-tools">
                <label class="tool open-file">
                    {t!(i18n, attention.record_open)}
                    <input
                        class="offscreen"
                        type="file"
                        data-testid="record-file"
                        accept=".json,.jsonl,application/json"
                        on:change:target=move |ev| open(ev.target())
                    />
                </label>
                <Show when=move || attention.record.with(Option::is_some)>
                    <button type="button" class="tool" on:click=move |_| attention.record.set(None)>
                        {t!(i18n, attention.record_clear)}
                    </button>
                </Show>
            </div>
            <p class="field-error" role="alert" data-testid="record-error">
                {move || error.get()}
            </p>
        </section>
    }
}
