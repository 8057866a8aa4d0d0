//! Several GPUs on the plan page: their number, and places for what a chunk of its own shows of them.

use leptos::prelude::*;

use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::shell::Store;
use crate::state::{Key, Route, Task, world};
use crate::widgets::Number;

/// Returns true if several GPUs are entered.
fn are_several() -> Memo<bool> {
    let reading = Store::get().reading();
    Memo::new(move |_| reading.with(|r| world(&r.good) != 1))
}

/// Controls for the number of GPUs and, for several, how they share a step. Other pages with these controls look at one
/// GPU.
#[component]
pub fn GpusGroup() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let is_here = move || store.route().get() == Route::Plan;
    let several = are_several();
    let trains = Memo::new(move |_| store.reading().with(|r| r.task == Task::Train));
    view! {
        <Show when=is_here>
            <section class="group" data-testid="gpus-group">
                <div class="gpus-number">
                    <h2>{t!(i18n, plan.gpus)}</h2>
                    <Number key=Key::World />
                </div>
                <Show when=move || several.get()>
                    <Show
                        when=move || trains.get()
                        fallback=move || view! { <p class="muted small">{t!(i18n, plan.gpus_training)}</p> }
                    >
                        <div class="gpus-sharing">
                            <LazyPart of=Lazy::Sharing />
                        </div>
                    </Show>
                </Show>
            </section>
        </Show>
    }
}

/// Says which of several GPUs the figures are of.
#[component]
pub fn SharedNote() -> impl IntoView {
    let several = are_several();
    view! {
        <Show when=move || several.get()>
            <div class="shared-note">
                <LazyPart of=Lazy::OfOne />
            </div>
        </Show>
    }
}
