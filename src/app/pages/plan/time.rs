//! Time of a step and its bottlenecks, in a chunk of its own.

mod chart;
mod entries;
mod explained;
mod figures;
mod follow;
mod kernels;
mod panel;
mod source;
mod untimed;
mod waits;

use leptos::prelude::*;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::simulation::Simulation;

pub use follow::entries as time_entries;
pub use panel::TimePanel;

/// Shows the time of a step. It is fetched once the first result is drawn, which a visit waits for.
#[component]
pub fn TimeCard() -> impl IntoView {
    let i18n = use_i18n();
    let detailed = Simulation::get().detailed;
    let is_time = Memo::new(move |was: Option<&bool>| was == Some(&true) || detailed.with(Option::is_some));
    view! {
        <section class="card time" data-testid="time">
            <h2>{t!(i18n, time.title)}</h2>
            <Show when=move || is_time.get()>
                <LazyPart of=Lazy::Time />
            </Show>
        </section>
    }
}
