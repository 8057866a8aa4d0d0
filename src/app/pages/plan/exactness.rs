//! How exact the figures are, from the measured steps of the model's family; fetched once the first result is on screen.

mod panel;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::part::part;
use crate::simulation::Simulation;
pub use panel::ExactnessPanel;

/// Measured steps of the family on screen, and how many of them are predicted exactly; `None` until they are fetched.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredSteps(pub RwSignal<Option<(usize, usize)>>);

impl MeasuredSteps {
    /// Provides the place for all components below, with nothing in it yet.
    pub fn provide() {
        provide_context(Self(RwSignal::new(None)));
    }
}

/// How many measured runs of this family are predicted exactly, in a few words.
#[component]
pub fn ExactnessBadge() -> impl IntoView {
    let i18n = use_i18n();
    let MeasuredSteps(steps) = expect_context();
    part(move || {
        let (steps, exact) = steps.get()?;
        let words = match steps {
            0 => t_string!(i18n, exactness.badge_none).to_owned(),
            _ => t_string!(
                i18n,
                exactness.badge,
                exact = exact.to_string(),
                steps = steps.to_string()
            )
            .to_string(),
        };
        Some(
            view! { <span class="badge" data-testid="exactness-badge" data-value=steps.to_string()>{words}</span> }
                .into_any(),
        )
    })
}

/// The question, and its answer below it.
#[component]
pub fn ExactnessPlace() -> impl IntoView {
    let i18n = use_i18n();
    let detailed = Simulation::get().detailed;
    // What is fetched before the details are drawn would delay them.
    let is_time = Memo::new(move |was: Option<&bool>| was == Some(&true) || detailed.with(Option::is_some));
    view! {
        <details class="finer exactness">
            <summary data-testid="exactness">{t!(i18n, exactness.how)}</summary>
            <Show when=move || is_time.get()>
                <LazyPart of=Lazy::Exactness />
            </Show>
        </details>
    }
}
