//! Controls of the plan page.

use leptos::prelude::*;
use vramscope_engine::Model;
use vramscope_engine::device::{Device, DeviceKind, Vendor};
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Freeze, Precision};

use super::model_source::ModelSource;
use crate::charts::tick_label;
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Key, Source};
use crate::widgets::{ComboOption, Combobox, Entry, Number, Segments, Select, Switch};

/// Controls for the model, the card, and the entries that apply to this model.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let takes = takes();
    let reading = Store::get().reading();
    let task = Memo::new(move |_| reading.with(|r| r.good.get(Key::Phase).to_owned()));
    view! {
        <form class="controls" on:submit=|ev| ev.prevent_default() aria-label=t!(i18n, plan.controls)>
            <ModelSource />
            <CardChoice>
                <Folded name=FoldedName::Limit keys=&[Key::LimitGib]>
                    <Entry key=Key::LimitGib placeholder="23.5" />
                </Folded>
            </CardChoice>
            <section class="group">
                <h2>{t!(i18n, plan.batch)}</h2>
                <Segments key=Key::Phase />
                <Show when=move || task.get() == "generate">
                    <Number key=Key::NewTokens step=64 />
                </Show>
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
                <Show when=move || takes.get().images>
                    <ImageSizes />
                </Show>
                <Show when=move || takes.get().text>
                    <Lengths />
                </Show>
            </section>
            <section class="group">
                <h2>{t!(i18n, plan.training)}</h2>
                <Select key=Key::Precision choices=all(Key::Precision) />
                <Segments key=Key::Attn />
                <Show when=move || task.get() == "train">
                    <Training takes />
                </Show>
            </section>
        </form>
    }
}

/// Entries that apply to training only.
#[component]
fn Training(takes: Memo<Takes>) -> impl IntoView {
    view! {
        <Select key=Key::Optim choices=all(Key::Optim) />
        <Select key=Key::Freeze choices=Signal::derive(move || meaningful(Key::Freeze, takes.get())) />
        <LoraEntries />
        <Select key=Key::Ckpt choices=Signal::derive(move || meaningful(Key::Ckpt, takes.get())) />
        <Number key=Key::Accum />
        <Switch key=Key::Clip />
        <Finer takes />
    }
}

/// Entry for images of different sizes.
#[component]
fn ImageSizes() -> impl IntoView {
    view! {
        <Folded name=FoldedName::ImageSizes keys=&[Key::ImageSizes]>
            <Entry key=Key::ImageSizes placeholder="480x640, 300x200" />
        </Folded>
    }
}

/// Entry for samples of different lengths; the packing choice appears once lengths are entered.
#[component]
fn Lengths() -> impl IntoView {
    let reading = Store::get().reading();
    let given = Memo::new(move |_| reading.with(|r| !r.setup.lengths.is_empty()));
    view! {
        <Folded name=FoldedName::Lengths keys=&[Key::Lengths]>
            <Entry key=Key::Lengths placeholder="512, 2048, 300" />
            <Show when=move || given.get()>
                <Select key=Key::Packing choices=all(Key::Packing) />
            </Show>
        </Folded>
    }
}

/// Properties that decide which entries are shown. All entries are shown until a model can be read, to avoid layout
/// jumps; the model is read again only when its source changes.
fn takes() -> Memo<Takes> {
    let reading = Store::get().reading();
    let source = Memo::new(move |_| reading.with(|r| r.source.clone()));
    let everything = Takes {
        text: true,
        images: true,
        image: true,
        grid: false,
        frames: false,
        parts: true,
    };
    Memo::new(move |last: Option<&Takes>| {
        let model = source.with(|source| match source {
            Source::Catalogue(name) => Model::from_catalogue(name),
            Source::Config(text) => Model::from_config(text),
        });
        let now = model.ok().map(|model| model.takes());
        now.or(last.copied()).unwrap_or(everything)
    })
}

fn all(key: Key) -> Signal<Vec<&'static str>> {
    Signal::stored(key.choices().to_vec())
}

/// Choices that apply to a model; those that name a component need a model with components.
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

/// Entries that few people change.
#[component]
fn Finer(takes: Memo<Takes>) -> impl IntoView {
    let reading = Store::get().reading();
    let autocast =
        Memo::new(move |_| reading.with(|r| matches!(r.setup.precision, Precision::AmpBf16 | Precision::AmpFp16)));
    view! {
        <Folded name=FoldedName::Finer keys=&[Key::Loss, Key::UseCache, Key::ZeroGrad, Key::Ema, Key::AutocastCache]>
            <Show when=move || takes.get().text>
                <Select key=Key::Loss choices=all(Key::Loss) />
                <Select key=Key::UseCache choices=all(Key::UseCache) />
            </Show>
            <Select key=Key::ZeroGrad choices=all(Key::ZeroGrad) />
            <Switch key=Key::Ema />
            <Show when=move || autocast.get()>
                <Switch key=Key::AutocastCache />
            </Show>
        </Folded>
    }
}

/// Name of a collapsible group.
#[derive(Debug, Clone, Copy)]
pub enum FoldedName {
    /// Limit of the allocator.
    Limit,
    /// Images of different sizes.
    ImageSizes,
    /// Samples of different lengths.
    Lengths,
    /// Settings that few people change.
    Finer,
}

/// A collapsible group, initially open if one of its entries differs from its default.
#[component]
pub fn Folded(
    /// Name of the group.
    name: FoldedName,
    /// Entries of the group.
    keys: &'static [Key],
    children: Children,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let open = untrack(|| keys.iter().any(|&key| store.has(key)));
    let name = move || match name {
        FoldedName::Limit => t_string!(i18n, plan.limit),
        FoldedName::ImageSizes => t_string!(i18n, plan.image_sizes),
        FoldedName::Lengths => t_string!(i18n, plan.lengths),
        FoldedName::Finer => t_string!(i18n, plan.finer),
    };
    view! {
        <details class="finer" prop:open=open>
            <summary>{name}</summary>
            {children()}
        </details>
    }
}

/// Card selection from a list grouped by vendor.
#[component]
pub fn CardChoice(
    /// Further controls that belong to the card.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
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
    let error = Signal::derive(move || simulation.card().and_then(Result::err));
    view! {
        <section class="group group-single">
            <h2>{t!(i18n, plan.card)}</h2>
            <Combobox key=Key::Gpu options error />
            {children.map(|children| children())}
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
