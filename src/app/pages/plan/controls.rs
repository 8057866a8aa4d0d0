use leptos::prelude::*;
use vramscope_engine::device::{Device, DeviceKind, Vendor};
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Freeze, Precision};

use super::model_source::ModelSource;
use crate::charts::tick_label;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::Key;
use crate::widgets::{ComboOption, Combobox, Entry, Number, Segments, Select, Switch};

/// Model, card and the setup's entries that mean something for this model.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let takes = takes();
    view! {
        <form class="controls" on:submit=|ev| ev.prevent_default() aria-label=move || t_string!(i18n, plan.controls)>
            <ModelSource />
            <CardChoice />
            <section class="group">
                <h2>{t!(i18n, plan.batch)}</h2>
                <div class="pair">
                    <Number key=Key::Batch />
                    <Show when=move || takes.get().text>
                        <Number key=Key::Seq step=256 />
                    </Show>
                </div>
                <div class="pair">
                    <Show when=move || takes.get().images>
                        <Number key=Key::Images least=0 />
                    </Show>
                    <Show when=move || takes.get().image>
                        <Number key=Key::Image step=14 least=14 placeholder="auto" />
                    </Show>
                    <Show when=move || takes.get().frames>
                        <Number key=Key::Frames step=2 least=2 placeholder="auto" />
                    </Show>
                </div>
                <Show when=move || takes.get().grid>
                    <Entry key=Key::Grid placeholder="24x24" />
                </Show>
            </section>
            <section class="group">
                <h2>{t!(i18n, plan.training)}</h2>
                <Select key=Key::Precision choices=all(Key::Precision) />
                <Select key=Key::Optim choices=all(Key::Optim) />
                <Select key=Key::Freeze choices=Signal::derive(move || meaningful(Key::Freeze, takes.get())) />
                <LoraEntries />
                <Select key=Key::Ckpt choices=Signal::derive(move || meaningful(Key::Ckpt, takes.get())) />
                <Segments key=Key::Attn />
                <div class="pair">
                    <Number key=Key::Accum />
                    <Switch key=Key::Clip />
                </div>
                <Finer takes />
            </section>
        </form>
    }
}

/// Shown for every kind of model until one can be read, so that nothing jumps.
fn takes() -> Memo<Takes> {
    let model = Simulation::get().model;
    let everything = Takes {
        text: true,
        images: true,
        image: true,
        grid: false,
        frames: false,
        parts: true,
    };
    Memo::new(move |last: Option<&Takes>| {
        let now = model.with(|m| m.as_ref().map(|m| m.takes()));
        now.or(last.copied()).unwrap_or(everything)
    })
}

fn all(key: Key) -> Signal<Vec<&'static str>> {
    Signal::stored(key.choices().to_vec())
}

/// The choices that mean something for a model: those that name a part need parts.
fn meaningful(key: Key, takes: Takes) -> Vec<&'static str> {
    let means_something = |choice: &&'static str| match *choice {
        "vision" | "language" | "all-but-connector" => takes.parts,
        "lora" | "qlora" => takes.text,
        _ => true,
    };
    key.choices().iter().copied().filter(means_something).collect()
}

#[component]
fn LoraEntries() -> impl IntoView {
    let reading = Store::get().reading();
    let lora = Memo::new(move |_| reading.with(|r| matches!(r.setup.freeze, Freeze::Lora | Freeze::Qlora)));
    view! {
        <Show when=move || lora.get()>
            <div class="pair">
                <Number key=Key::Rank step=8 />
                <Entry key=Key::LoraDropout />
            </div>
            <div class="pair">
                <Entry key=Key::LoraTargets />
                <Select key=Key::LoraDtype choices=all(Key::LoraDtype) />
            </div>
        </Show>
    }
}

/// What few people change; open from the start where one of them is changed.
#[component]
fn Finer(takes: Memo<Takes>) -> impl IntoView {
    const KEYS: [Key; 4] = [Key::Loss, Key::ZeroGrad, Key::Ema, Key::AutocastCache];
    let i18n = use_i18n();
    let store = Store::get();
    let reading = store.reading();
    let open = untrack(|| KEYS.into_iter().any(|key| store.has(key)));
    let autocast =
        Memo::new(move |_| reading.with(|r| matches!(r.setup.precision, Precision::AmpBf16 | Precision::AmpFp16)));
    view! {
        <details class="finer" prop:open=open>
            <summary>{t!(i18n, plan.finer)}</summary>
            <Show when=move || takes.get().text>
                <Select key=Key::Loss choices=all(Key::Loss) />
            </Show>
            <Select key=Key::ZeroGrad choices=all(Key::ZeroGrad) />
            <Switch key=Key::Ema />
            <Show when=move || autocast.get()>
                <Switch key=Key::AutocastCache />
            </Show>
        </details>
    }
}

#[component]
fn CardChoice() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let options = Signal::derive(move || {
        let option = |d: &Device| ComboOption {
            value: d.name.clone(),
            detail: tick_label(d.memory()),
            group: group(i18n, d),
        };
        Device::all().iter().map(option).collect()
    });
    let error = Signal::derive(move || simulation.run().and_then(|run| run.card.as_ref().err().cloned()));
    view! {
        <section class="group group-single">
            <h2>{t!(i18n, plan.card)}</h2>
            <Combobox key=Key::Gpu options error />
        </section>
    }
}

fn group(i18n: crate::i18n::Words, device: &Device) -> String {
    match (device.vendor, device.kind) {
        (Vendor::Nvidia, DeviceKind::Datacentre) => t_string!(i18n, card.nvidia_datacentre).to_string(),
        (Vendor::Nvidia, DeviceKind::Workstation) => t_string!(i18n, card.nvidia_workstation).to_string(),
        (Vendor::Nvidia, _) => t_string!(i18n, card.nvidia_consumer).to_string(),
        (Vendor::Amd, _) => "AMD".into(),
        (Vendor::Apple, _) => "Apple".into(),
    }
}
