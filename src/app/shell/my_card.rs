//! The user's own measured card, selected on `/benchmarks` and stored on this machine, so that its kernel times feed
//! the estimates.
//!
//! Both parts are stored as text and parsed only where needed: the kernels by the engine's worker
//! (`time::CardKernels`), the record's attention by the page `/attention`.

use std::sync::Arc;

use leptos::prelude::*;

use super::preferences;
use crate::events::listen;

const KERNELS: &str = "card";
const ATTENTION: &str = "card.attention";

/// Handle through which components reach the selected card.
#[derive(Debug, Clone, Copy)]
pub struct MyCard {
    kernels: RwSignal<Option<Arc<str>>>,
}

impl MyCard {
    /// Provides the card to all components below, and follows selections made in other windows.
    pub fn provide() {
        let card = Self {
            kernels: RwSignal::new(kept()),
        };
        provide_context(card);
        listen(&window(), "storage", move |_| card.kernels.set(kept()));
    }

    /// Returns the card that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Kernels of the card as text; reactive.
    pub fn kernels(self) -> Option<Arc<str>> {
        self.kernels.get()
    }

    /// Attention measurements of the card's record as text.
    pub fn attention() -> Option<String> {
        preferences::read(ATTENTION)
    }

    /// Selects a card. Returns false if this machine does not store it; the choice then lasts until the page is left.
    pub fn choose(self, kernels: String, attention: &str) -> bool {
        preferences::write(KERNELS, Some(&kernels));
        preferences::write(ATTENTION, Some(attention));
        let is_kept = preferences::read(KERNELS).as_deref() == Some(&*kernels);
        self.kernels.set(Some(kernels.into()));
        is_kept
    }

    /// Clears the selection.
    pub fn forget(self) {
        preferences::write(KERNELS, None);
        preferences::write(ATTENTION, None);
        self.kernels.set(None);
    }
}

fn kept() -> Option<Arc<str>> {
    preferences::read(KERNELS).map(Into::into)
}
