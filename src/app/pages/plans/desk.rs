use std::sync::Arc;

use leptos::prelude::*;
use vramscope_plan::Plan;

use crate::shell::Store;
use crate::state::{Draft, Reading};
use crate::worker::plans::PlanNews;
use crate::worker::{Answer, Ask, Engine, Slot};

/// The search, and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Desk {
    /// What was told last.
    pub news: RwSignal<Option<Arc<PlanNews>>>,
    /// Whether more is to come.
    pub at_work: RwSignal<bool>,
    /// What was asked.
    asked: RwSignal<Draft>,
    /// What is entered.
    entries: Memo<Draft>,
    engine: Engine,
}

impl Desk {
    /// Gives a desk to every component below; nothing is searched until someone asks.
    pub fn provide() -> Self {
        let reading = Store::get().reading();
        let desk = Self {
            news: RwSignal::new(None),
            at_work: RwSignal::new(false),
            asked: RwSignal::default(),
            entries: Memo::new(move |_| reading.with(Reading::of_plan)),
            engine: Engine::get(),
        };
        on_cleanup(move || desk.engine.cancel(Slot::Plan));
        provide_context(desk);
        desk
    }

    /// The desk that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Searches anew.
    pub fn search(self) {
        let entries = self.entries.get_untracked();
        self.asked.set(entries.clone());
        self.at_work.set(true);
        self.news.set(Some(Arc::default()));
        self.engine
            .ask(Slot::Plan, Ask::Plan(entries), move |answer, progress| {
                // The page may have been left.
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

    /// Searches no further; what was told stays.
    pub fn stop(self) {
        self.engine.cancel(Slot::Plan);
        self.at_work.set(false);
    }

    /// Whether something else is entered than what was asked.
    pub fn is_stale(self) -> bool {
        self.entries.with(|now| self.asked.with(|asked| now != asked))
    }

    /// What someone reads of the plan, once there is one.
    pub fn plan<T>(self, read: impl FnOnce(&Plan) -> T) -> Option<T> {
        self.news.with(|news| news.as_ref()?.plan.as_ref().map(read))
    }
}
