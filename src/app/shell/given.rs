//! Input that is not in the URL: dropped files, and the way in which the model is given.

use gloo_file::File;
use leptos::prelude::*;

use super::Store;
use crate::worker::launched::LaunchText;

/// Purpose of files that start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaunchUse {
    /// The current setup.
    #[default]
    Plan,
    /// The first of two that are compared.
    A,
    /// The second of two that are compared, which is the current setup.
    B,
}

/// Files that start a run and are on screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenLaunch {
    /// The files; none yet if the person was asked for them.
    pub texts: Vec<LaunchText>,
    /// What they are for.
    pub use_as: LaunchUse,
}

/// Most recent input that is not in the URL.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    /// A recording that was dropped or opened.
    pub file: RwSignal<Option<File>, LocalStorage>,
    /// A dataset that was dropped or opened.
    pub dataset: RwSignal<Option<File>, LocalStorage>,
    /// True if the model comes from a `config.json`, entered or still to be.
    pub by_config: RwSignal<bool>,
    /// True while a name is being typed that is not the current model's.
    pub names_model: RwSignal<bool>,
    /// Files that start a run, while they are on screen.
    pub launch: RwSignal<Option<OpenLaunch>>,
    /// Text typed or pasted for a diagnosis. It may be a company's log, so it never enters the URL.
    pub log: RwSignal<String>,
    /// Input of the last diagnosis: files, or else a text.
    pub diagnosed: RwSignal<Option<Diagnosed>, LocalStorage>,
    /// Something that cannot be told apart, while the person is asked what it is.
    pub unknown: RwSignal<Option<RawInput>, LocalStorage>,
    /// True while all settings are shown beside the results.
    pub all_settings: RwSignal<bool>,
    /// True while names of settings, pages and numbers are looked for.
    pub finding: RwSignal<bool>,
}

/// Text or files that a person typed, pasted, dropped or opened, whose kind is not known yet.
#[derive(Debug, Clone)]
pub enum RawInput {
    /// A text that was typed or pasted.
    Text(String),
    /// Files that were dropped or opened.
    Files(Vec<File>),
}

/// Input of a diagnosis.
#[derive(Debug, Clone)]
pub struct Diagnosed {
    /// Files that were dropped or opened; none for a text.
    pub files: Vec<File>,
    /// The text; empty for files.
    pub text: String,
}

/// Returns true if the window has room for the settings beside the results: in narrower ones the style sheets put them above
/// each other.
fn has_room_beside() -> bool {
    let width = window().inner_width().ok().and_then(|width| width.as_f64());
    width.is_some_and(|width| width > 860.0)
}

impl Given {
    /// Provides it to every component below. The store must be provided before.
    pub fn provide() {
        provide_context(Self {
            file: RwSignal::new_local(None),
            dataset: RwSignal::new_local(None),
            by_config: RwSignal::new(false),
            names_model: RwSignal::new(false),
            launch: RwSignal::new(None),
            log: RwSignal::new(String::new()),
            diagnosed: RwSignal::new_local(None),
            unknown: RwSignal::new_local(None),
            all_settings: RwSignal::new(has_room_beside() && !Store::get().is_new()),
            finding: RwSignal::new(false),
        });
    }

    /// Returns the one that the page provides.
    pub fn get() -> Self {
        expect_context()
    }
}
