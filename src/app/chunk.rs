//! Chunks: parts of the program that are fetched when first needed.
//!
//! `wasm-split` cuts the compiled program at the functions marked `#[wasm_split(CHUNK)]`. Code reachable only from them
//! leaves the first download; code shared by several chunks moves to a chunk of its own; code that the first download
//! reaches stays in it. So nothing else may call code that is meant to load lazily.

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
use crate::part::part;
use crate::worker::{Begin, Closer, Timer, begin_time, later};

/// A value from a chunk, or the error if the chunk could not be loaded; the browser's console shows the cause.
type Come<T> = Result<T, SplitLoaderError>;
/// A chunk being loaded.
pub type Coming<T> = Pin<Box<dyn Future<Output = Come<T>>>>;
/// Creates a view whose chunk is already loaded.
type Make = fn() -> AnyView;

/// A page, or part of one, that loads lazily.
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
    /// The page `/recommend`.
    Recommend,
    /// Side-by-side comparison of setups.
    Compare,
    /// Derivation of a number.
    Explanation,
    /// Sweep of one entry.
    Sweep,
    /// Time breakdown of a step.
    Time,
}

impl Later {
    /// Loads the chunk unless it is already loaded.
    fn fetch(self) -> Coming<Make> {
        match self {
            Self::Attention => Box::pin(attention()),
            Self::Benchmarks => Box::pin(benchmarks()),
            Self::Course => Box::pin(course()),
            Self::Diagnose => Box::pin(diagnose()),
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

/// Loads the host's work for `/attention`.
#[wasm_split(attention, fallible)]
pub fn attention_work() -> Come<Begin> {
    Ok(later::attention)
}

/// Loads the host's work for sweeps.
#[wasm_split(plan, fallible)]
pub fn sweep_work() -> Come<Begin> {
    Ok(later::sweep)
}

/// Loads the host's work for the largest micro-batch.
#[wasm_split(plan, fallible)]
pub fn batches_work() -> Come<Begin> {
    Ok(later::batches)
}

/// Loads the host's search for `/recommend`.
#[wasm_split(recommend, fallible)]
pub fn plan_work() -> Come<Begin> {
    Ok(later::plan)
}

/// Loads the host's derivations and exports of a run.
#[wasm_split(plan, fallible)]
pub fn closer_work() -> Come<Closer> {
    Ok(later::closer)
}

/// Loads the host's computation of a step's time.
#[wasm_split(time, fallible)]
pub fn time_work() -> Come<Timer> {
    Ok(begin_time)
}

/// Loads the model families that are not in the first download.
#[wasm_split(models, fallible)]
pub fn further_models() -> Come<FurtherModels> {
    Ok(FurtherModels::all())
}

/// Shows a page once its chunk is loaded.
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

/// Shows a part of a page once its chunk is loaded, and nothing before.
#[component]
pub fn LaterPart(of: Later) -> impl IntoView {
    let (come, fetch) = follow(of);
    part(move || Some(come.get()?.map_or_else(|| unloaded(fetch), |make| make())))
}

/// Loads the chunk now and again on request; `Some(None)` means that it could not be loaded.
fn follow(of: Later) -> (ReadSignal<Option<Option<Make>>>, Callback<()>) {
    let (come, set) = signal(None);
    let fetch = Callback::new(move |()| {
        set.set(None);
        spawn_local(async move {
            let made = of.fetch().await.ok();
            // The user may have left this page in the meantime.
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
