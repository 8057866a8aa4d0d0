//! `/compare`: where the memory of two setups differs, tensor by tensor.

mod parts;
mod row;
mod sides;
mod tensors;

use leptos::prelude::*;

use crate::i18n::use_i18n;
use crate::pages::launch::Phrases;
use crate::pages::plan::pins;
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::{Draft, Key, Reading};
use crate::widgets::{ErrorText, error_of};
use crate::worker::view::Compared;
use crate::worker::{Answer, Ask, Engine, Slot};
use parts::PartsTable;
use sides::{Empty, Sides};

/// The two setups, A and B.
pub type Both = [Draft; 2];

/// Two setups and their difference, once they are simulated.
#[derive(Debug, Clone, Copy)]
struct Comparison {
    /// The setups; `None` while A is not chosen.
    both: Memo<Option<Both>>,
    /// Last setups that were simulated, with what came of them.
    found: RwSignal<Option<(Both, Compared)>>,
}

impl Comparison {
    /// Asks the engine whenever one of the setups changes.
    fn follow(store: Store) -> Self {
        let engine = Engine::get();
        let pinned = pins(store);
        let reading = store.reading();
        let both = Memo::new(move |_| {
            let a = pinned.with(|pins| pins.all().first().cloned())?;
            Some([a, reading.with(Reading::entries)])
        });
        let found = RwSignal::new(None);
        Effect::new(move || {
            let Some(both) = both.get() else {
                found.set(None);
                return engine.cancel(Slot::Difference);
            };
            let ask = Ask::Difference(Box::new(both.clone()));
            engine.ask(Slot::Difference, ask, move |answer, _| {
                if let Some(Answer::Difference(answer)) = answer
                    && let Some(compared) = answer.open()
                {
                    found.try_set(Some((both.clone(), compared)));
                }
            });
        });
        on_cleanup(move || engine.cancel(Slot::Difference));
        Self { both, found }
    }

    /// Returns true while the setups on screen are not those that were simulated; reactive.
    fn is_busy(self) -> bool {
        let both = self.both.get();
        self.found
            .with(|found| found.as_ref().map(|(both, _)| both) != both.as_ref())
    }
}

/// Page with the two setups above and their difference below.
#[component]
pub fn ComparePage() -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let comparison = Comparison::follow(Store::get());
    let both = comparison.both;
    let error = error_of(Key::Compare);
    let has_a = Memo::new(move |_| both.with(Option::is_some));
    let content = part(move || {
        // The rows below are made anew in another language.
        let words = phrases.now();
        if !has_a.get() {
            return Some(view! { <Empty /> }.into_any());
        }
        let Some((both, compared)) = comparison.found.get() else {
            return Some(view! { <p class="card muted" role="status">{words.word("c_working")}</p> }.into_any());
        };
        let difference = compared.difference.clone();
        let difference = difference.map(|difference| view! { <PartsTable difference /> });
        Some(
            view! {
                <Sides both compared />
                {difference}
            }
            .into_any(),
        )
    });
    view! {
        <main
            class="results compared"
            id="results"
            tabindex="-1"
            aria-busy=text(move || (has_a.get() && comparison.is_busy()).to_string())
            data-testid="compared"
        >
            <section class="compared-title">
                <p class="muted">{phrases.live("c_lead")}</p>
                <ErrorText key=Key::Compare error />
            </section>
            {content}
        </main>
    }
}
