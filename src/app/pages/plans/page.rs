//! State of the search for a plan.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_plan::Plan;

use crate::shell::{MyCard, Store};
use crate::state::{Draft, Reading};
use crate::worker::plans::PlanNews;
use crate::worker::{Answer, Ask, Engine, Slot};

/// State of the search for a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlansState {
    /// Latest news of the search.
    pub news: RwSignal<Option<Arc<PlanNews>>>,
    /// True while the search is running.
    pub at_work: RwSignal<bool>,
    /// Entries that the search was started with.
    asked: RwSignal<Draft>,
    /// Current entries.
    entries: Memo<Draft>,
    card: MyCard,
    engine: Engine,
}

impl PlansState {
    /// Provides the state to all components below; the search starts only on request.
    pub fn provide() -> Self {
        let reading = Store::get().reading();
        let page = Self {
            news: RwSignal::new(None),
            at_work: RwSignal::new(false),
            asked: RwSignal::default(),
            entries: Memo::new(move |_| reading.with(Reading::of_plan)),
            card: MyCard::get(),
            engine: Engine::get(),
        };
        on_cleanup(move || page.engine.cancel(Slot::Plan));
        provide_context(page);
        page
    }

    /// Returns the state that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Starts a new search.
    pub fn search(self) {
        self.search_with(|_| ());
    }

    /// Starts a new search for entries that are changed first.
    pub fn search_with(self, change: impl FnOnce(&mut Draft)) {
        let mut entries = self.entries.get_untracked();
        change(&mut entries);
        self.asked.set(entries.clone());
        self.at_work.set(true);
        self.news.set(Some(Arc::default()));
        let card = self.card.kernels().map(|text| text.to_string());
        self.engine
            .ask(Slot::Plan, Ask::Plan { entries, card }, move |answer, progress| {
                // The page may have been left in the meantime.
                if let Some(Answer::Plan(text)) = answer
                    && let Ok(news) = serde_json::from_str::<PlanNews>(&text)
                {
                    self.news.try_set(Some(Arc::new(news)));
                }
                if progress.is_complete() {
                    self.at_work.try_set(false);
                }
            });
    }

    /// Stops the search and keeps its results.
    pub fn stop(self) {
        self.engine.cancel(Slot::Plan);
        self.at_work.set(false);
    }

    /// Returns true if the entries have changed since the search started.
    pub fn is_stale(self) -> bool {
        self.entries.with(|now| self.asked.with(|asked| now != asked))
    }

    /// Reads something from the plan, if there is one.
    pub fn plan<T>(self, read: impl FnOnce(&Plan) -> T) -> Option<T> {
        self.news.with(|news| news.as_ref()?.plan.as_ref().map(read))
    }
}
