//! Input that is not in the URL: a dropped file, and the way in which the model is given.

use gloo_file::File;
use leptos::prelude::*;

/// Most recent input that is not in the URL.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// A recording that was dropped or opened.
    pub file: RwSignal<Option<File>, LocalStorage>,
    /// A dataset that was dropped or opened.
    pub dataset: RwSignal<Option<File>, LocalStorage>,
    /// True if the model comes from a `config.json`, entered or still to be.
    pub by_config: RwSignal<bool>,
}

impl Given {
    /// Gives it to every component below.
    pub fn provide() {
        provide_context(Self {
            file: RwSignal::new_local(None),
            dataset: RwSignal::new_local(None),
            by_config: RwSignal::new(false),
        });
    }

    /// Returns the one that the page provides.
    pub fn get() -> Self {
        expect_context()
    }
}
