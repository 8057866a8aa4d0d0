//! Controls of the attention page.

use leptos::prelude::*;
use vramscope_engine::attention::Call;
use vramscope_engine::setup::Setting;

use super::record::RecordEntry;
use super::state::Attention;
use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::{CardChoice, ModelSource};
use crate::state::Key;
use crate::widgets::{Number, Segments, Select};

/// Entries that describe the attention call; anything left empty takes the model's own value.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let attention = Attention::get();
    let own = move |of: fn(&Call) -> u64| {
        Signal::derive(move || {
            attention
                .call
                .with(|c| Some(of(c.as_ref()?.as_ref().ok()?).to_string()))
                .unwrap_or_default()
        })
    };
    let all = |key: Key| Signal::stored(key.choices().to_vec());
    view! {
        <form class="controls" on:submit=|ev| ev.prevent_default() aria-label=move || t_string!(i18n, nav.attention)>
            <ModelSource />
            <CardChoice />
            <section class="group">
                <h2>{t!(i18n, attention.shape)}</h2>
                <div class="pair">
                    <Number key=Setting::Batch />
                    <Number key=Key::HeadDim step=8 least=8 placeholder=own(|c| c.width) />
                </div>
                <div class="pair">
                    <Number key=Key::Heads placeholder=own(|c| c.heads) />
                    <Number key=Key::KvHeads placeholder=own(|c| c.kv_heads) />
                </div>
                <div class="pair">
                    <Select key=Key::Dtype choices=all(Key::Dtype) />
                    <Select key=Key::Causal choices=all(Key::Causal) />
                </div>
                <Segments key=Key::Pass />
            </section>
            <section class="group">
                <h2>{t!(i18n, attention.curves)}</h2>
                <div class="pair">
                    <Number key=Key::At step=256 />
                    <Number key=Key::Longest step=4096 least=128 />
                </div>
                <div class="pair">
                    <Number key=Key::Window step=128 least=2 />
                    <Number key=Key::Chunk step=64 />
                </div>
                <div class="pair">
                    <Number key=Key::Topk step=5 />
                </div>
            </section>
            <RecordEntry />
        </form>
    }
}
