//! Controls of the plan page.

use leptos::prelude::*;
use vramscope_engine::device::{Device, DeviceKind, Vendor};
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::Part;
use vramscope_engine::setup::Group;
use vramscope_engine::units::Bytes;

use super::dataset::OpenDataset;
use super::gpus::GpusGroup;
use super::model_source::ModelSource;
use super::settings::{FoldedSettings, Settings, Shown};
use crate::charts::tick_label;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::Key;
use crate::widgets::{ComboOption, Combobox, Entry, Number, Segments};

/// Controls for the model, the card, and the settings that apply to this model.
#[component]
pub fn Controls() -> impl IntoView {
    let i18n = use_i18n();
    let shown = Shown::new();
    let reading = Store::get().reading();
    let task = Memo::new(move |_| reading.with(|r| r.good.get(Key::Phase).to_owned()));
    view! {
        <form id="settings" class="controls" on:submit=|ev| ev.prevent_default() aria-label=t!(i18n, intake.all_settings)>
            <ModelSource is_told_elsewhere=true />
            <CardChoice>
                <Folded name=FoldedName::Limit keys=&[Key::LimitGib]>
                    <Entry key=Key::LimitGib placeholder="23.5" />
                </Folded>
            </CardChoice>
            <GpusGroup />
            <section class="group">
                <h2>{t!(i18n, plan.batch)}</h2>
                <Segments key=Key::Phase />
                <Show when=move || task.get() == "generate">
                    <Number key=Key::NewTokens step=64 />
                </Show>
                <Settings of=Group::Batch shown />
                <Settings of=Group::Images shown />
                <Settings of=Group::ImageSizes shown />
                <ImagePositions />
                <FoldedSettings name=FoldedName::ImageSizes of=&[Group::Grid] shown />
                <FoldedSettings name=FoldedName::Lengths of=&[Group::Lengths] shown />
                <Show when=move || shown.has_text()>
                    <OpenDataset />
                </Show>
            </section>
            <section class="group">
                <h2>{t!(i18n, plan.training)}</h2>
                <Settings of=Group::Precision shown />
                <Settings of=Group::Optimizer shown />
                <Settings of=Group::Parameters shown />
                <Settings of=Group::Adapters shown />
                <Settings of=Group::Step shown />
                <FoldedSettings name=FoldedName::Finer of=&[Group::Loss, Group::Finer] shown />
            </section>
        </form>
    }
}

/// Shows how many positions of the sequence the images of a sample take.
#[component]
fn ImagePositions() -> impl IntoView {
    let i18n = use_i18n();
    let words = Simulation::get().text(move |run| {
        let positions = run.inputs.image_tokens.filter(|positions| *positions > 0);
        positions.map_or_else(String::new, |positions| {
            t_string!(i18n, plan.image_positions, positions = grouped(positions)).to_string()
        })
    });
    view! { <p class="muted small image-positions">{text(move || words.get())}</p> }
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
    #[prop(into)]
    keys: Vec<Key>,
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
    let options = card_options();
    let error = Signal::derive(move || simulation.card().and_then(Result::err));
    view! {
        <section class="group group-single">
            <h2>{t!(i18n, plan.card)}</h2>
            <Combobox key=Key::Gpu options error />
            <CardMemory />
            {children.map(|children| children())}
        </section>
    }
}

/// All cards, grouped by vendor.
pub fn card_options() -> Signal<Vec<ComboOption>> {
    let i18n = use_i18n();
    Signal::derive(move || {
        let option = |d: &Device| ComboOption {
            value: d.name.to_owned(),
            detail: tick_label(d.memory()),
            words: format!("{} {}", group(i18n, d), d.name),
            group: group(i18n, d),
        };
        Device::all().iter().map(option).collect()
    })
}

/// Explains the three amounts of a card's memory: as sold, as CUDA sees it, and what of that is left to PyTorch's allocator.
#[component]
fn CardMemory() -> impl IntoView {
    let i18n = use_i18n();
    let words = Simulation::get().text(move |run| {
        let Some(card) = run.card.as_ref().ok().filter(|card| card.limit.is_none()) else {
            return String::new();
        };
        let device = Device::by_name(&card.name).ok();
        if device.is_some_and(|device| !device.vendor.is_driven_by_cuda()) {
            return String::new();
        }
        let outside = run.parts.iter().filter(|(part, _)| matches!(part, Part::Outside(_)));
        let outside: Bytes = outside.map(|(_, bytes)| *bytes).sum();
        let left = gib(card.fit.room.saturating_sub(outside));
        let sold = device.map_or_else(String::new, |device| tick_label(device.memory()));
        t_string!(
            i18n,
            plan.card_memory,
            sold = sold,
            seen = gib(card.fit.room),
            left = left
        )
        .to_string()
    });
    view! { <p class="muted small image-positions" data-testid="card-memory">{text(move || words.get())}</p> }
}

fn group(i18n: crate::i18n::Words, device: &Device) -> String {
    match (device.vendor, device.kind) {
        (Vendor::Nvidia, DeviceKind::Datacentre) => t_string!(i18n, card.nvidia_datacentre).to_string(),
        (Vendor::Nvidia, DeviceKind::Workstation) => t_string!(i18n, card.nvidia_workstation).to_string(),
        (Vendor::Nvidia, _) => t_string!(i18n, card.nvidia_consumer).to_string(),
        (vendor, _) => vendor.name().into(),
    }
}
