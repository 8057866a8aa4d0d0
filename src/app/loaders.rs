//! Chunks of the program: parts that are fetched when they are first needed.
//!
//! `wasm-split` cuts the compiled program at the functions marked `#[wasm_split(CHUNK)]`. What only these reach leaves the
//! first program; what several chunks reach becomes a chunk that they share; what the first program reaches too stays
//! there. Nothing else may call what is meant to come later.

use std::pin::Pin;

use leptos::prelude::*;
use vramscope_engine::model::{LazyGroup, LazyModels};
use wasm_split_helpers::wasm_split;

use crate::hub::HubPart;
use crate::lazy::{Fetch, Fetched, Lazy, MakeView};
use crate::pages;
use crate::pages::find::FindDialog;
use crate::pages::launch::LaunchDialog;
use crate::pages::plan::{
    AroundPanel, Compare, CostPanel, DatasetPanel, ExactnessPanel, ExplanationPanel, NumbersPanel, OfOne, RefusedPanel,
    Sharing, SweepPanel, TimePanel, TimelinePanel,
};
use crate::pages::plans::{LaunchFile, MakeFit};
use crate::pages::setups::SetupsPanel;
use crate::worker::around::answer as answer_around;
use crate::worker::costs::{Coster, costs};
use crate::worker::difference::{Compare as CompareSetups, difference};
use crate::worker::launch::LaunchReader;
use crate::worker::lazy::{self, AnswerKept, Begin, LoadedChunks, Need, Planner, Timer};
use crate::worker::several::Several;
use crate::worker::{Replayer, begin_time, replayer};

/// Fetches the chunk of a part of the page, unless it is there.
pub fn part(of: Lazy) -> Fetch<MakeView> {
    match of {
        Lazy::Page(route) => pages::load(route),
        Lazy::Refused => Box::pin(refused()),
        Lazy::Compare => Box::pin(compare()),
        Lazy::Explanation => Box::pin(explanation()),
        Lazy::Launch => Box::pin(launch_dialog()),
        Lazy::Setups => Box::pin(setups()),
        Lazy::MakeFit => Box::pin(make_fit()),
        Lazy::LaunchFile => Box::pin(launch_file()),
        Lazy::Sweep => Box::pin(sweep()),
        Lazy::Time => Box::pin(time()),
        Lazy::Timeline => Box::pin(timeline()),
        Lazy::Dataset => Box::pin(dataset()),
        Lazy::Exactness => Box::pin(exactness()),
        Lazy::Sharing => Box::pin(sharing()),
        Lazy::OfOne => Box::pin(of_one()),
        Lazy::Numbers => Box::pin(numbers()),
        Lazy::Around => Box::pin(around()),
        Lazy::Hub => Box::pin(hub()),
        Lazy::Cost => Box::pin(cost()),
        Lazy::Find => Box::pin(find()),
    }
}

/// Fetches the chunk that a question of the engine's host needs, and adds it to those that are there.
pub fn work(need: Need, mut chunks: LoadedChunks) -> Pin<Box<dyn Future<Output = Option<LoadedChunks>>>> {
    Box::pin(async move {
        match need {
            Need::Attention => chunks.attention = Some(attention_work().await.ok()?),
            Need::Sweep => chunks.sweep = Some(sweep_work().await.ok()?),
            Need::Batches => chunks.batches = Some(batches_work().await.ok()?),
            Need::Plan => chunks.plan = Some(plan_work().await.ok()?),
            Need::Cost => chunks.cost = Some(cost_work().await.ok()?),
            Need::DeriveOrExport => chunks.derive_or_export = Some(derive_or_export_work().await.ok()?),
            Need::Around => chunks.around = Some(around_work().await.ok()?),
            Need::Timer => chunks.timer = Some(time_work().await.ok()?),
            Need::Several => {
                let several = several_work().await.ok()?;
                several.provide();
                chunks.several = Some(several);
            }
            Need::Difference => chunks.difference = Some(difference_work().await.ok()?),
            Need::Launch => chunks.launch = Some(launch_work().await.ok()?),
            Need::Replayer => chunks.replayer = Some(replayer_work().await.ok()?),
            // No chunk, but the recording of one question (`Pump::unpack`).
            Need::UnpackedRecording => {}
            Need::Models(group) => {
                let models = match group {
                    LazyGroup::Images => images().await,
                    LazyGroup::Text => text().await,
                    LazyGroup::Blocks => blocks().await,
                };
                models.ok()?.provide();
                chunks.add_models(group);
            }
        }
        Some(chunks)
    })
}

#[wasm_split(plan, fallible)]
fn compare() -> Fetched<MakeView> {
    Ok(|| view! { <Compare /> }.into_any())
}

#[wasm_split(plan, fallible)]
fn explanation() -> Fetched<MakeView> {
    Ok(|| view! { <ExplanationPanel /> }.into_any())
}

#[wasm_split(opened, fallible)]
fn launch_dialog() -> Fetched<MakeView> {
    Ok(|| view! { <LaunchDialog /> }.into_any())
}

#[wasm_split(find, fallible)]
fn find() -> Fetched<MakeView> {
    Ok(|| view! { <FindDialog /> }.into_any())
}

#[wasm_split(setups, fallible)]
fn setups() -> Fetched<MakeView> {
    Ok(|| view! { <SetupsPanel /> }.into_any())
}

#[wasm_split(recommend, fallible)]
fn make_fit() -> Fetched<MakeView> {
    Ok(|| view! { <MakeFit /> }.into_any())
}

#[wasm_split(recommend, fallible)]
fn launch_file() -> Fetched<MakeView> {
    Ok(|| view! { <LaunchFile /> }.into_any())
}

#[wasm_split(time, fallible)]
fn time() -> Fetched<MakeView> {
    Ok(|| view! { <TimePanel /> }.into_any())
}

#[wasm_split(timeline, fallible)]
fn timeline() -> Fetched<MakeView> {
    Ok(|| view! { <TimelinePanel /> }.into_any())
}

#[wasm_split(refused, fallible)]
fn refused() -> Fetched<MakeView> {
    Ok(|| view! { <RefusedPanel /> }.into_any())
}

#[wasm_split(plan, fallible)]
fn sweep() -> Fetched<MakeView> {
    Ok(|| view! { <SweepPanel /> }.into_any())
}

#[wasm_split(dataset, fallible)]
fn dataset() -> Fetched<MakeView> {
    Ok(|| view! { <DatasetPanel /> }.into_any())
}

#[wasm_split(dataset, fallible)]
fn exactness() -> Fetched<MakeView> {
    Ok(|| view! { <ExactnessPanel /> }.into_any())
}

#[wasm_split(several, fallible)]
fn sharing() -> Fetched<MakeView> {
    Ok(|| view! { <Sharing /> }.into_any())
}

#[wasm_split(several, fallible)]
fn of_one() -> Fetched<MakeView> {
    Ok(|| view! { <OfOne /> }.into_any())
}

#[wasm_split(several, fallible)]
fn numbers() -> Fetched<MakeView> {
    Ok(|| view! { <NumbersPanel /> }.into_any())
}

#[wasm_split(around, fallible)]
fn around() -> Fetched<MakeView> {
    Ok(|| view! { <AroundPanel /> }.into_any())
}

#[wasm_split(hub, fallible)]
fn hub() -> Fetched<MakeView> {
    Ok(|| view! { <HubPart /> }.into_any())
}

#[wasm_split(around, fallible)]
fn around_work() -> Fetched<AnswerKept> {
    Ok(answer_around)
}

#[wasm_split(cost, fallible)]
fn cost() -> Fetched<MakeView> {
    Ok(|| view! { <CostPanel /> }.into_any())
}

#[wasm_split(cost, fallible)]
fn cost_work() -> Fetched<Coster> {
    Ok(costs)
}

#[wasm_split(several, fallible)]
fn several_work() -> Fetched<Several> {
    Ok(Several::own())
}

#[wasm_split(difference, fallible)]
fn difference_work() -> Fetched<CompareSetups> {
    Ok(difference)
}

#[wasm_split(launch, fallible)]
fn launch_work() -> Fetched<LaunchReader> {
    Ok(LaunchReader::own())
}

#[wasm_split(attention, fallible)]
fn attention_work() -> Fetched<Begin> {
    Ok(lazy::attention)
}

#[wasm_split(plan, fallible)]
fn sweep_work() -> Fetched<Begin> {
    Ok(lazy::sweep)
}

#[wasm_split(plan, fallible)]
fn batches_work() -> Fetched<Begin> {
    Ok(lazy::batches)
}

#[wasm_split(recommend, fallible)]
fn plan_work() -> Fetched<Planner> {
    Ok(lazy::plan)
}

#[wasm_split(plan, fallible)]
fn derive_or_export_work() -> Fetched<AnswerKept> {
    Ok(lazy::derive_or_export)
}

#[wasm_split(time, fallible)]
fn time_work() -> Fetched<Timer> {
    Ok(begin_time)
}

#[wasm_split(recorded, fallible)]
fn replayer_work() -> Fetched<Replayer> {
    Ok(replayer())
}

#[wasm_split(images, fallible)]
fn images() -> Fetched<LazyModels> {
    Ok(LazyModels::images())
}

#[wasm_split(text, fallible)]
fn text() -> Fetched<LazyModels> {
    Ok(LazyModels::text())
}

#[wasm_split(blocks, fallible)]
fn blocks() -> Fetched<LazyModels> {
    Ok(LazyModels::blocks())
}
