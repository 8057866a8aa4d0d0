//! The setup in full, for paper alone: on the screen the form shows it.

use leptos::prelude::*;
use vramscope_engine::setup::Setting;

use super::settings::Shown;
use crate::i18n::{Words, t, use_i18n};
use crate::part::part;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Key, Reading, world};
use crate::words;

/// Lists every setting that applies, as it was simulated.
#[component]
pub fn PrintedSetup() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let shown = Shown::new();
    let own_length = Simulation::get().text(|run| run.inputs.seq.to_string());
    part(move || {
        let lines = store
            .reading()
            .with(|reading| lines(i18n, reading, shown, &own_length.get()));
        let rows = lines
            .into_iter()
            .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
        let view = view! {
            <section class="printed" data-testid="printed" aria-hidden="true">
                <h2>{t!(i18n, plan.controls)}</h2>
                <dl>{rows.collect_view()}</dl>
            </section>
        };
        Some(view.into_any())
    })
}

fn lines(i18n: Words, reading: &Reading, shown: Shown, own_length: &str) -> Vec<(String, String)> {
    let several = [Key::World, Key::Strategy, Key::Offload];
    let of_several = several
        .into_iter()
        .filter(|key| *key == Key::World || world(&reading.good) > 1);
    let settings = Setting::ALL.iter().copied().filter(|setting| shown.has(*setting));
    let keys = [Key::Model, Key::Gpu]
        .into_iter()
        .chain(of_several)
        .chain(settings.map(Key::Setting));
    let value = |key: Key| {
        let text = match key {
            Key::Setting(Setting::Seq) if !reading.good.has(key) => own_length.to_owned(),
            key => reading.good.get(key).to_owned(),
        };
        match key.choices() {
            [] => text,
            _ => words::choice(i18n, key, &text),
        }
    };
    keys.map(|key| (words::label(i18n, key), value(key)))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}
