//! Reads models on the page, once the code of their families is there.

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_engine::model::LazyGroup;

use crate::state::Source;
use crate::worker::lazy::{self, LoadedChunks, Need};

/// Groups of families whose code the page has fetched.
#[derive(Debug, Clone, Copy)]
pub struct Models {
    chunks: RwSignal<LoadedChunks>,
    fetching: StoredValue<Vec<Need>>,
}

impl Models {
    /// Provides the groups to all components below, with nothing fetched yet.
    pub fn provide() {
        provide_context(Self {
            chunks: RwSignal::default(),
            fetching: StoredValue::default(),
        });
    }

    /// Returns the groups that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Reads the model of a source with `read`; `None` as long as the code of its family is not loaded. Reactive: effects
    /// and memos that call this run again once it is.
    pub fn read<T>(self, source: &Source, read: impl FnOnce() -> T) -> Option<T> {
        match Need::to_read(source, self.chunks.get()) {
            None => Some(read()),
            Some(need) => {
                self.fetch(need);
                None
            }
        }
    }

    /// Loads the code that reading a source's model takes.
    pub async fn load(self, source: &Source) {
        self.load_need(Need::to_read(source, self.chunks.get_untracked())).await;
    }

    /// Loads the code of a group of models.
    pub async fn load_group(self, group: Option<LazyGroup>) {
        self.load_need(Need::models(group, self.chunks.get_untracked())).await;
    }

    async fn load_need(self, need: Option<Need>) {
        if let Some(need @ Need::Models(group)) = need
            && lazy::fetch(need, LoadedChunks::default()).await.is_some()
        {
            self.chunks.try_update(|chunks| chunks.add_models(group));
        }
    }

    /// Fetches a group, unless that has begun. One that could not be fetched is tried again when it is next needed.
    fn fetch(self, need: Need) {
        if self.fetching.with_value(|fetching| fetching.contains(&need)) {
            return;
        }
        self.fetching.update_value(|fetching| fetching.push(need));
        spawn_local(async move {
            let loaded = lazy::fetch(need, LoadedChunks::default()).await;
            self.fetching
                .try_update_value(|fetching| fetching.retain(|other| *other != need));
            if let (Some(_), Need::Models(group)) = (loaded, need) {
                self.chunks.try_update(|chunks| chunks.add_models(group));
            }
        });
    }
}
