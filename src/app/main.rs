//! Entry point of the page and its worker. Native builds compile only what is tested without a browser.
#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(dead_code, unused_imports, reason = "what uses it runs in the browser")
)]

mod benchmarks;
#[cfg(target_arch = "wasm32")]
mod charts;
mod course;
#[cfg(target_arch = "wasm32")]
mod events;
#[cfg(target_arch = "wasm32")]
mod fetched;
#[cfg(target_arch = "wasm32")]
mod frame;
#[cfg(target_arch = "wasm32")]
mod hub;
mod hub_words;
#[cfg(target_arch = "wasm32")]
mod i18n;
mod languages;
mod launch_words;
#[cfg(target_arch = "wasm32")]
mod lazy;
#[cfg(target_arch = "wasm32")]
mod loaders;
#[cfg(target_arch = "wasm32")]
mod models;
#[cfg(target_arch = "wasm32")]
mod pages;
#[cfg(target_arch = "wasm32")]
mod part;
mod part_words;
#[cfg(target_arch = "wasm32")]
mod shell;
#[cfg(target_arch = "wasm32")]
mod simulation;
mod state;
#[cfg(target_arch = "wasm32")]
mod widgets;
#[cfg(target_arch = "wasm32")]
mod words;
mod worker;

fn main() {
    // The same program runs in both places: on the page, which asks, and in its worker, which answers.
    #[cfg(target_arch = "wasm32")]
    {
        lazy::install(loaders::part);
        worker::lazy::install(loaders::work);
        match worker::scope::here() {
            Some(scope) => worker::scope::start(scope),
            None => frame::start(),
        }
    }
}
