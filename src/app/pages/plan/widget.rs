//! Embeddable part of the plan page.

use leptos::prelude::*;

use super::explain::{Explanation, ExplanationPlace};
use super::memory_bar::MemoryBar;
use super::phases::Phases;
use super::results::{BreakdownCard, refused};
use super::verdict::{NotCuda, NotThisRun, VerdictLine};
use crate::i18n::{t, use_i18n};
use crate::lazy::{Lazy, LazyPart};
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::Widget;

/// Shows one part of the plan page alone.
#[component]
pub fn PlanWidget(part: Widget) -> impl IntoView {
    let i18n = use_i18n();
    let outcome = Simulation::provide(Store::get()).outcome;
    Explanation::provide();
    let is_run = Memo::new(move |_| outcome.with(|o| matches!(o, Outcome::Ready(_))));
    view! {
        <main class="results" id="results" aria-label=t!(i18n, plan.results)>
            <Show when=move || is_run.get() fallback=refused>
                {content(part)}
            </Show>
        </main>
        <ExplanationPlace />
    }
}

fn content(part: Widget) -> AnyView {
    let i18n = use_i18n();
    match part {
        Widget::Phases => view! {
            <section class="card">
                <h2>{t!(i18n, plan.phases)}</h2>
                <Phases />
            </section>
        }
        .into_any(),
        Widget::Timeline => view! { <LazyPart of=Lazy::Timeline /> }.into_any(),
        Widget::Breakdown => view! { <BreakdownCard /> }.into_any(),
        Widget::Verdict | Widget::Page => view! {
            <section class="card">
                <VerdictLine />
                <NotThisRun />
                <NotCuda />
                <MemoryBar />
            </section>
        }
        .into_any(),
    }
}
