//! The card that a person measured and calls theirs: chosen on `/benchmarks` and kept on this machine, for
//! estimates of its times to be made from.
//!
//! What is kept are texts that only those read who need them: the kernels, which the engine's worker reads
//! (`time::CardKernels`), and the record's attention, which the page `/attention` reads.

use std::sync::Arc;

use leptos::prelude::*;

use super::preferences;
use crate::events::listen;

const KERNELS: &str = "card";
const ATTENTION: &str = "card.attention";

/// The chosen card, as components reach it.
#[derive(Debug, Clone, Copy)]
pub struct MyCard {
    kernels: RwSignal<Option<Arc<str>>>,
}

impl MyCard {
    /// Gives the card to every component below, and follows what other windows choose.
    pub fn provide() {
        let card = Self {
            kernels: RwSignal::new(kept()),
        };
        provide_context(card);
        listen(&window(), "storage", move |_| card.kernels.set(kept()));
    }

    /// The card that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Its kernels as text, followed as another card is chosen.
    pub fn kernels(self) -> Option<Arc<str>> {
        self.kernels.get()
    }

    /// Its record's attention as text.
    pub fn attention() -> Option<String> {
        preferences::read(ATTENTION)
    }

    /// Chooses a card. `false` where this machine does not keep it: then it holds until the page is left.
    pub fn choose(self, kernels: String, attention: &str) -> bool {
        preferences::write(KERNELS, Some(&kernels));
        preferences::write(ATTENTION, Some(attention));
        let is_kept = preferences::read(KERNELS).as_deref() == Some(&*kernels);
        self.kernels.set(Some(kernels.into()));
        is_kept
    }

    /// Takes the choice back.
    pub fn forget(self) {
        preferences::write(KERNELS, None);
        preferences::write(ATTENTION, None);
        self.kernels.set(None);
    }
}

fn kept() -> Option<Arc<str>> {
    preferences::read(KERNELS).map(Into::into)
}
