//! `/diagnose`: explains a crash from its error message, log, snapshot or profile.

mod answer;
mod answer_data;
mod checklists;
mod finding;
mod fixes;
mod input;
mod instants;
mod levels;
mod reader;
mod recording;
mod segments;
mod setup;
mod stack;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Given;
use answer::AnswerView;
use checklists::Checklists;
use input::Input;
use reader::{Reader, State};
use setup::RunSetup;

/// Page with the input and the run's setup at the top, the diagnosis below.
#[component]
pub fn DiagnosePage() -> impl IntoView {
    let i18n = use_i18n();
    let reader = Reader::provide();
    let given = Given::get();
    let stop = move || {
        given.diagnosed.set(None);
        reader.stop();
    };
    Effect::new(move || reader.speak(i18n.locale().as_str()));
    let result = move || match reader.state.get() {
        State::Nothing => None,
        State::Reading(done, of) => Some(
            view! {
                <p role="status" data-testid="diagnose-progress">
                    {move || {
                        let mib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 20));
                        if of > 0.0 && done >= of {
                            t_string!(i18n, diagnose.working).to_string()
                        } else {
                            t_string!(i18n, diagnose.reading, done = mib(done), of = mib(of) + " MiB").to_string()
                        }
                    }}
                    " "
                    <progress value=done.to_string() max=of.max(1.0).to_string() aria-hidden="true"></progress>
                    " "
                    <button type="button" class="tool" data-testid="diagnose-stop" on:click=move |_| stop()>
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
        State::Answered => Some(view! { <AnswerView /> }.into_any()),
    };
    view! {
        <main class="results diagnose" id="results" tabindex="-1" aria-label=move || t_string!(i18n, nav.diagnose)>
            <div class="diagnose-given">
                <Input />
                <RunSetup />
            </div>
            {crate::part::part(result)}
            <Checklists />
        </main>
    }
}
