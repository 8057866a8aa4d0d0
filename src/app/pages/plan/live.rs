//! Tensors live at the selected instant.

use leptos::prelude::*;
use vramscope_engine::report::Instant;

use crate::simulation::{Detailed, Simulation};
use crate::worker::view::Live;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Follows the tensors live at an instant; keeps the last answer until the engine sends a new one.
pub fn follow(instant: Memo<Option<Instant>>) -> RwSignal<Option<Live>> {
    let (simulation, engine) = (Simulation::get(), Engine::get());
    let live = RwSignal::new(None);
    Effect::new(move || {
        let Some((detailed, instant)) = simulation.detailed.get().zip(instant.get()) else {
            return;
        };
        let Detailed { run, details } = &*detailed;
        if instant == details.curve.peak {
            // The peak's list arrived with the run.
            engine.cancel(Slot::Instant);
            live.set(Some(details.at_peak.clone()));
            return;
        }
        let ask = Ask::Live { run: run.id, instant };
        engine.ask_next(Slot::Instant, ask, move |answer, _| {
            if let Some(Answer::Live(found)) = answer {
                live.try_set(Some(found));
            }
        });
    });
    live
}
