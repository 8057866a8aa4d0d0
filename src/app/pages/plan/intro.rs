//! Introduction to the page: one sentence, and examples to begin with.

use leptos::prelude::*;
use vramscope_engine::setup::Setting;

use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::state::{Draft, Key, Reading};
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

/// One sentence and three examples, for a visit that begins without a setup of its own.
#[component]
pub fn Intro() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    // Stays for the visit: what disappears at the first change would move the control under the pointer.
    let is_new = untrack(|| store.reading().with(|reading| reading.entries() == Draft::default()));
    is_new.then(|| {
        let examples = EXAMPLES.map(|entries| view! { <Example entries /> });
        view! {
            <section class="intro" aria-label=t!(i18n, plan.intro_label) data-testid="intro">
                <p>{t!(i18n, plan.intro)}</p>
                <div class="intro-examples">
                    <span class="muted small">{t!(i18n, plan.examples)}</span>
                    {examples}
                </div>
            </section>
        }
    })
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
