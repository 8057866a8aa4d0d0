//! What a person gives to the page beside texts: a file, and the way to give a model.

use gloo_file::File;
use leptos::prelude::*;

/// What was given last.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// A recording that was dropped or opened.
    pub file: RwSignal<Option<File>, LocalStorage>,
    /// Whether the model comes from a `config.json`, entered or still to be.
    pub by_config: RwSignal<bool>,
}

impl Given {
    /// Gives it to every component below.
    pub fn provide() {
        provide_context(Self {
            file: RwSignal::new_local(None),
            by_config: RwSignal::new(false),
        });
    }

    /// What the page provides.
    pub fn get() -> Self {
        expect_context()
    }
}
