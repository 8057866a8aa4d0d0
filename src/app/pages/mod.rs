//! Pages of the app, one folder per route; and `launch` and `find`, which lie over them.
//!
//! A page other than the first one is a chunk of the program: `wasm-split` cuts at the functions marked
//! `#[wasm_split(CHUNK)]`. Only [`load`] calls them.

pub mod attention;
pub mod benchmarks;
pub mod compare;
pub mod course;
pub mod diagnose;
pub mod find;
pub mod launch;
pub mod plan;
pub mod plans;
pub mod recorded;
pub mod setups;

use leptos::prelude::*;
use wasm_split_helpers::wasm_split;

use crate::lazy::{Fetch, Fetched, MakeView};
use crate::state::Route;

/// Fetches the chunk of a page, unless it is there.
pub fn load(route: Route) -> Fetch<MakeView> {
    match route {
        Route::Plan => Box::pin(std::future::ready(Ok(plan_page as MakeView))),
        Route::Recorded => Box::pin(recorded_page()),
        Route::Recommend => Box::pin(recommend_page()),
        Route::Compare => Box::pin(compare_page()),
        Route::Attention => Box::pin(attention_page()),
        Route::Diagnose => Box::pin(diagnose_page()),
        Route::Benchmarks => Box::pin(benchmarks_page()),
        Route::Course => Box::pin(course_page()),
    }
}

fn plan_page() -> AnyView {
    view! { <plan::PlanPage /> }.into_any()
}

#[wasm_split(attention, fallible)]
fn attention_page() -> Fetched<MakeView> {
    Ok(|| view! { <attention::AttentionPage /> }.into_any())
}

#[wasm_split(benchmarks, fallible)]
fn benchmarks_page() -> Fetched<MakeView> {
    Ok(|| view! { <benchmarks::BenchmarksPage /> }.into_any())
}

#[wasm_split(compare, fallible)]
fn compare_page() -> Fetched<MakeView> {
    Ok(|| view! { <compare::ComparePage /> }.into_any())
}

#[wasm_split(course, fallible)]
fn course_page() -> Fetched<MakeView> {
    Ok(|| view! { <course::CoursePage /> }.into_any())
}

#[wasm_split(diagnose, fallible)]
fn diagnose_page() -> Fetched<MakeView> {
    Ok(|| view! { <diagnose::DiagnosePage /> }.into_any())
}

#[wasm_split(recommend, fallible)]
fn recommend_page() -> Fetched<MakeView> {
    Ok(|| view! { <plans::PlansPage /> }.into_any())
}

#[wasm_split(recorded, fallible)]
fn recorded_page() -> Fetched<MakeView> {
    Ok(|| view! { <recorded::RecordedPage /> }.into_any())
}
