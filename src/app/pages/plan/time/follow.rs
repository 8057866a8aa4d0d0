//! Requests the time of the current run.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;

use crate::events::Pending;
use crate::shell::{MyCard, Store};
use crate::simulation::Simulation;
use crate::state::Reading;
use crate::worker::timing::{NoTime, Timing};
use crate::worker::{Answer, Ask, Engine, Slot, TimeEntries};

/// Delay before a run's time is requested: its simulation would delay the next run's.
const REST: Duration = Duration::from_millis(120);

/// Entries beside the setup that affect the time of a run; reactive.
pub fn entries() -> Memo<TimeEntries> {
    let reading = Store::get().reading();
    let card = MyCard::get();
    Memo::new(move |_| TimeEntries {
        entered: reading.with(Reading::of_time),
        card: card.kernels().map(|text| text.to_string()),
    })
}

/// Time of the current run.
#[derive(Clone, Copy)]
pub struct Times {
    /// Latest time, or the reason why there is none.
    pub now: RwSignal<Option<Result<Arc<Timing>, NoTime>>>,
    /// True if the shown time is outdated or incomplete.
    pub is_waiting: RwSignal<bool>,
    engine: Engine,
    pending: Pending,
}

impl Times {
    /// Requests the time after each run, once its details are drawn; a new entry cancels the request.
    pub fn follow() -> Self {
        let simulation = Simulation::get();
        let times = Self {
            now: RwSignal::new(None),
            is_waiting: RwSignal::new(true),
            engine: Engine::get(),
            pending: Pending::new(),
        };
        let reading = Store::get().reading();
        let setup = Memo::new(move |_| reading.with(|reading| (reading.entries(), reading.of_recorded())));
        Effect::new(move || {
            // Frees the worker for the new run.
            setup.track();
            times.stop();
        });
        let entries = entries();
        Effect::new(move || {
            let Some(detailed) = simulation.detailed.get() else {
                return;
            };
            let (run, entries) = (detailed.run.id, entries.get());
            times.stop();
            let ask = move || times.ask(run, entries);
            times.pending.begin(REST, ask);
        });
        on_cleanup(move || times.stop());
        times
    }

    fn ask(self, run: u32, entries: TimeEntries) {
        self.engine
            .ask(Slot::Time, Ask::Time { run, entries }, move |answer, progress| {
                if let Some(Answer::Time(answer)) = answer
                    && let Some(answer) = answer.open()
                {
                    self.now.try_set(Some(answer.map(Arc::new)));
                }
                self.is_waiting.try_set(!progress.is_complete());
            });
    }

    fn stop(self) {
        self.engine.cancel(Slot::Time);
        self.is_waiting.try_set(true);
        self.pending.stop();
    }
}
