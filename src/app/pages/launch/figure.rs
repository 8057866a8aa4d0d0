//! The answer to the files in one line: memory, verdict and grade, before the setup is taken.

use leptos::prelude::*;
use vramscope_engine::simulate::Change;
use vramscope_launch::Grade;

use super::Looked;
use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::pages::plan::{Icon, detail, grade_words, headline};
use crate::part::part;
use crate::widgets::WaysOut;
use crate::words;
use crate::worker::view::Summary;
use crate::worker::{Answer, Ask, Engine, Refusal, Slot};

/// What the run of the files takes, or why there is none, with ways out.
type Found = Result<Box<Summary>, Refusal>;

/// Asks for the run of the files whenever their setup changes, and shows it.
#[component]
pub fn Figure() -> impl IntoView {
    let i18n = use_i18n();
    let looked = Looked::get();
    let engine = Engine::get();
    // While the model's name is looked for, a figure would refuse what is about to be found.
    let setup = Memo::new(move |_| looked.setup().filter(|_| looked.unknown_model().is_empty()));
    let found = RwSignal::new(None::<Found>);
    Effect::new(move || {
        found.set(None);
        let Some(entries) = setup.get() else {
            return engine.cancel(Slot::LaunchRun);
        };
        engine.ask(Slot::LaunchRun, Ask::Setups(vec![entries]), move |answer, _| {
            if let Some(Answer::Setup(answer)) = answer {
                found.try_set(Some(answer));
            }
        });
    });
    on_cleanup(move || engine.cancel(Slot::LaunchRun));
    let take = Callback::new(move |way: Change| looked.ways.update(|ways| ways.push(way)));
    part(move || {
        setup.with(Option::is_some).then(|| match found.get() {
            None => {
                let words = Phrases::of(i18n).now().word("reading");
                view! { <p class="muted" role="status">{words}</p> }.into_any()
            }
            Some(Ok(summary)) => view! { <Runs summary=*summary /> }.into_any(),
            Some(Err(why)) => view! {
                <div class="launch-figure" role="status" data-testid="launch-figure" data-value="refused">
                    <p class="launch-fault">{words::refusal(i18n, &why)}</p>
                    <WaysOut why take />
                </div>
            }
            .into_any(),
        })
    })
}

/// Verdict, need and grade of a run; its need alone where the card is not known.
#[component]
fn Runs(summary: Summary) -> impl IntoView {
    let i18n = use_i18n();
    let needed = summary.needed().get().to_string();
    match summary.card {
        Ok(card) => {
            let verdict = card.fit.verdict;
            let (name, grade) = grade_words(i18n, Grade::of(&card.left_out));
            view! {
                <div
                    class=format!("launch-figure verdict {}", card.colour(verdict))
                    role="status"
                    data-testid="launch-figure"
                    data-value=verdict.name()
                    data-needed=needed
                >
                    <Icon verdict />
                    <strong class="verdict-words">{headline(i18n, &card)}</strong>
                    <p class="verdict-detail">
                        {detail(i18n, &card.fit)}
                        " "
                        <span class="badge" data-testid="launch-grade" data-value=name>{grade}</span>
                    </p>
                </div>
            }
            .into_any()
        }
        Err(message) => view! {
            <p class="launch-figure" role="status" data-testid="launch-figure" data-value="no-card" data-needed=needed>
                {message}
            </p>
        }
        .into_any(),
    }
}
