//! `/diagnose`: whatever a person has after a crash, and what it means.

mod answer;
mod curve;
mod finding;
mod input;
mod reader;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use answer::AnswerView;
use input::Input;
use reader::{Reader, State};

/// What was given at the top, what it means below.
#[component]
pub fn DiagnosePage() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::provide();
    let result = move || match reader.state.get() {
        State::Nothing => None,
        State::Reading(done, of) => Some(
            view! {
                <p role="status" data-testid="diagnose-progress">
                    {move || {
                        let (done, of) = (done + 1, of);
                        t_string!(i18n, diagnose.reading, done = done.to_string(), of = of.to_string()).to_string()
                    }}
                    " "
                    <button type="button" class="tool" data-testid="diagnose-stop" on:click=move |_| reader.stop()>
                        {t!(i18n, diagnose.stop)}
                    </button>
                </p>
            }
            .into_any(),
        ),
        State::Fault(fault) => Some(
            view! {
                <p class="card refusal" role="alert" data-testid="diagnose-fault">
                    {fault}
                </p>
            }
            .into_any(),
        ),
        State::Answered(answer) => Some(view! { <AnswerView answer /> }.into_any()),
    };
    view! {
        <main class="results diagnose" id="results" tabindex="-1" aria-label=move || t_string!(i18n, nav.diagnose)>
            <Input />
            {crate::part::part(result)}
        </main>
    }
}
