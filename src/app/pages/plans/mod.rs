//! `/recommend`: recommends setups for given hardware, with reasons.

mod controls;
mod copy_export;
mod course_cards;
mod entries;
mod exports;
mod front;
mod ladder;
mod launch_file;
mod make_fit;
mod nearest;
mod page;
mod ready;
mod recommended;
mod refused;
mod searched;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::pages::plan::NotThisRun;
use crate::part::part;
use crate::shell::Store;
use crate::simulation::Simulation;
use controls::Controls;
use course_cards::CourseCards;
use exports::Exports;
use front::Front;
use ladder::Ladder;
pub use launch_file::LaunchFile;
pub use make_fit::MakeFit;
use nearest::NearestCard;
use page::PlansState;
use ready::Ready;
use recommended::Recommended;
use refused::refused;
use searched::{Progress, Searched};

/// Page with the question at the left, the plan at the right, and prepared plans below.
#[component]
pub fn PlansPage() -> impl IntoView {
    let i18n = use_i18n();
    // Provides the error messages of model and card.
    Simulation::provide(Store::get());
    let page = PlansState::provide();
    let refusal = part(move || {
        let why = page.news.get()?.refused.clone()?;
        Some(
            view! {
                <section class="card refusal" role="alert" data-testid="plan-refused">
                    <p class="refusal-message">{refused(i18n, &why)}</p>
                </section>
            }
            .into_any(),
        )
    });
    let has_plan = Memo::new(move |_| page.plan(|_| ()).is_some());
    let plan = part(move || {
        has_plan.get().then(|| {
            view! {
                <div class="plans-told" aria-busy=move || page.is_stale().to_string()>
                    <Recommended />
                    <NearestCard />
                    <Front />
                    <Ladder />
                    <Exports />
                    <Searched />
                </div>
            }
            .into_any()
        })
    });
    view! {
        <div class="plan plans">
            <Controls />
            <main class="results" id="results" tabindex="-1" aria-label=move || t_string!(i18n, nav.recommend)>
                <section class="card">
                    <h2>{t!(i18n, recommend.title)}</h2>
                    <p class="muted small">{t!(i18n, recommend.explain)}</p>
                    <p class="plans-tools">
                        <button type="submit" form="plan-form" class="primary" data-testid="plan-go">
                            {t!(i18n, recommend.go)}
                        </button>
                    </p>
                    <NotThisRun />
                    <Progress />
                </section>
                {refusal}
                {plan}
                <Ready />
                <CourseCards />
            </main>
        </div>
    }
}
