//! Parts of the program that are fetched when they are first needed: chunks.
//!
//! `wasm-split` cuts the compiled program at the functions marked `#[wasm_split(CHUNK)]`. What only these reach
//! leaves the first program; what several chunks reach becomes a chunk that they share; what the first program
//! reaches too stays there. Nothing else may call what is meant to come later.

use std::pin::Pin;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_engine::model::FurtherModels;
use wasm_split_helpers::{SplitLoaderError, wasm_split};

use crate::i18n::{t, use_i18n};
use crate::pages::attention::AttentionPage;
use crate::pages::benchmarks::BenchmarksPage;
use crate::pages::course::CoursePage;
use crate::pages::diagnose::DiagnosePage;
use crate::pages::plan::{Compare, ExplanationPanel, SweepPanel, TimePanel};
use crate::pages::plans::PlansPage;
use crate::pages::recorded::RecordedPage;
use crate::part::part;
use crate::worker::{Begin, Closer, Recorder, Timer, begin_time, later, recorder};

/// Something of a chunk; or the chunk could not be had. The browser's console says why.
type Come<T> = Result<T, SplitLoaderError>;
/// A chunk that was asked for.
pub type Coming<T> = Pin<Box<dyn Future<Output = Come<T>>>>;
/// Makes a view. It is of a chunk that is there by then.
type Make = fn() -> AnyView;

/// What is shown once its chunk is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Later {
    /// The page `/attention`.
    Attention,
    /// The page `/benchmarks`.
    Benchmarks,
    /// The page `/course`.
    Course,
    /// The page `/diagnose`.
    Diagnose,
    /// The page `/recorded`.
    Recorded,
    /// The page `/recommend`.
    Recommend,
    /// Setups side by side.
    Compare,
    /// How a number comes about.
    Explanation,
    /// How the need follows one entry.
    Sweep,
    /// Where the time of a step goes.
    Time,
}

impl Later {
    /// Fetches its chunk, unless it is there.
    fn fetch(self) -> Coming<Make> {
        match self {
            Self::Attention => Box::pin(attention()),
            Self::Benchmarks => Box::pin(benchmarks()),
            Self::Course => Box::pin(course()),
            Self::Diagnose => Box::pin(diagnose()),
            Self::Recorded => Box::pin(recorded()),
            Self::Recommend => Box::pin(recommend()),
            Self::Compare => Box::pin(compare()),
            Self::Explanation => Box::pin(explanation()),
            Self::Sweep => Box::pin(sweep()),
            Self::Time => Box::pin(time()),
        }
    }
}

#[wasm_split(attention, fallible)]
fn attention() -> Come<Make> {
    Ok(|| view! { <AttentionPage /> }.into_any())
}

#[wasm_split(benchmarks, fallible)]
fn benchmarks() -> Come<Make> {
    Ok(|| view! { <BenchmarksPage /> }.into_any())
}

#[wasm_split(course, fallible)]
fn course() -> Come<Make> {
    Ok(|| view! { <CoursePage /> }.into_any())
}

#[wasm_split(diagnose, fallible)]
fn diagnose() -> Come<Make> {
    Ok(|| view! { <DiagnosePage /> }.into_any())
}

#[wasm_split(recorded, fallible)]
fn recorded() -> Come<Make> {
    Ok(|| view! { <RecordedPage /> }.into_any())
}

#[wasm_split(recommend, fallible)]
fn recommend() -> Come<Make> {
    Ok(|| view! { <PlansPage /> }.into_any())
}

#[wasm_split(plan, fallible)]
fn compare() -> Come<Make> {
    Ok(|| view! { <Compare /> }.into_any())
}

#[wasm_split(plan, fallible)]
fn explanation() -> Come<Make> {
    Ok(|| view! { <ExplanationPanel /> }.into_any())
}

#[wasm_split(time, fallible)]
fn time() -> Come<Make> {
    Ok(|| view! { <TimePanel /> }.into_any())
}

#[wasm_split(plan, fallible)]
fn sweep() -> Come<Make> {
    Ok(|| view! { <SweepPanel /> }.into_any())
}

/// What the engine's host computes for `/attention`.
#[wasm_split(attention, fallible)]
pub fn attention_work() -> Come<Begin> {
    Ok(later::attention)
}

/// What it computes for a sweep.
#[wasm_split(plan, fallible)]
pub fn sweep_work() -> Come<Begin> {
    Ok(later::sweep)
}

/// What it computes for the largest micro-batch.
#[wasm_split(plan, fallible)]
pub fn batches_work() -> Come<Begin> {
    Ok(later::batches)
}

/// What it searches for `/recommend`.
#[wasm_split(recommend, fallible)]
pub fn plan_work() -> Come<Begin> {
    Ok(later::plan)
}

/// What it says of a run that is looked at more closely.
#[wasm_split(plan, fallible)]
pub fn closer_work() -> Come<Closer> {
    Ok(later::closer)
}

/// What tells the time of a step.
#[wasm_split(time, fallible)]
pub fn time_work() -> Come<Timer> {
    Ok(begin_time)
}

/// What plays recordings.
#[wasm_split(recorded, fallible)]
pub fn recorder_work() -> Come<Recorder> {
    Ok(recorder())
}

/// What runs most families of models.
#[wasm_split(models, fallible)]
pub fn further_models() -> Come<FurtherModels> {
    Ok(FurtherModels::all())
}

/// A page, as soon as its chunk is there.
#[component]
pub fn LaterPage(of: Later) -> impl IntoView {
    let i18n = use_i18n();
    let (come, fetch) = follow(of);
    part(move || {
        Some(match come.get() {
            None => view! {
                <main class="results muted" id="results" tabindex="-1" aria-busy="true">
                    {t!(i18n, page.loading)}
                </main>
            }
            .into_any(),
            Some(Some(make)) => make(),
            Some(None) => view! {
                <main class="results" id="results" tabindex="-1">
                    {unloaded(fetch)}
                </main>
            }
            .into_any(),
        })
    })
}

/// A part of a page, as soon as its chunk is there; nothing before.
#[component]
pub fn LaterPart(of: Later) -> impl IntoView {
    let (come, fetch) = follow(of);
    part(move || Some(come.get()?.map_or_else(|| unloaded(fetch), |make| make())))
}

/// Fetches it now, and again when asked; `Some(None)` says that it could not be had.
fn follow(of: Later) -> (ReadSignal<Option<Option<Make>>>, Callback<()>) {
    let (come, set) = signal(None);
    let fetch = Callback::new(move |()| {
        set.set(None);
        spawn_local(async move {
            let made = of.fetch().await.ok();
            // The person may have gone elsewhere meanwhile.
            set.try_set(Some(made));
        });
    });
    fetch.run(());
    (come, fetch)
}

fn unloaded(fetch: Callback<()>) -> AnyView {
    let i18n = use_i18n();
    view! {
        <section class="card refusal" role="alert" data-testid="unloaded">
            <p>{t!(i18n, page.unloaded)}</p>
            <button type="button" class="tool" data-testid="load-again" on:click=move |_| fetch.run(())>
                {t!(i18n, page.load_again)}
            </button>
        </section>
    }
    .into_any()
}
