//! The setup on other numbers of GPUs.

use std::time::Duration;

use leptos::prelude::*;

use super::on_number::Card;
use crate::events::Pending;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Key, Reading, world};
use crate::words;
use crate::worker::several::OnNumber;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Delay after a run before the others begin, which would delay the next run's own.
const PAUSE: Duration = Duration::from_millis(300);

/// Runs on other numbers of GPUs.
#[derive(Clone, Copy)]
struct Following {
    /// Those of the last setup that all of them were run for, or the first ones while they come.
    found: RwSignal<Vec<OnNumber>>,
    /// True while runs of the current setup are missing.
    is_waiting: RwSignal<bool>,
    pending: Pending,
    engine: Engine,
}

impl Following {
    /// Runs them again after each run; a change of the entries stops them.
    fn start() -> Self {
        let (simulation, reading) = (Simulation::get(), Store::get().reading());
        let following = Self {
            found: RwSignal::default(),
            is_waiting: RwSignal::new(true),
            pending: Pending::new(),
            engine: Engine::get(),
        };
        let entries = Memo::new(move |_| reading.with(Reading::entries));
        Effect::new(move || {
            entries.track();
            following.stop();
        });
        Effect::new(move || {
            simulation.outcome.track();
            following.stop();
            following.pending.begin(PAUSE, move || following.ask(simulation));
        });
        on_cleanup(move || following.stop());
        following
    }

    fn ask(self, simulation: Simulation) {
        let entries = simulation.entries.get_value();
        let mut fresh = Vec::new();
        self.engine
            .ask(Slot::Numbers, Ask::Numbers(entries), move |answer, progress| {
                if let Some(Answer::OnNumber(number)) = answer {
                    fresh.extend(number.open());
                }
                let is_complete = progress.is_complete();
                let is_first = self.found.with_untracked(|found| found.len() < fresh.len());
                if is_complete || is_first {
                    self.found.try_set(fresh.clone());
                }
                self.is_waiting.try_set(!is_complete);
            });
    }

    fn stop(self) {
        self.engine.cancel(Slot::Numbers);
        self.is_waiting.try_set(true);
        self.pending.stop();
    }
}

/// A row of cards: what the setup needs on each of a few numbers of GPUs.
#[component]
pub fn NumbersPanel() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let following = Following::start();
    let found = following.found;
    let strategy = move || {
        let name = found.with(|all| {
            let last = all.iter().rev().find(|on| on.other.is_none());
            last.map(|on| on.entries.get(Key::Strategy).to_owned())
        });
        words::choice(i18n, Key::Strategy, &name.unwrap_or_default())
    };
    let explain = move || t_string!(i18n, several.explain, strategy = strategy());
    let cards = move |others: bool| {
        let all = found.get();
        let most = all
            .iter()
            .filter_map(|on| on.found.as_ref().ok())
            .map(|found| found.needed())
            .max();
        let shown = all.into_iter().filter(|on| on.other.is_some() == others);
        let cards: Vec<_> = shown.map(|on| view! { <Card on most /> }).collect();
        (!cards.is_empty()).then(|| cards.into_any())
    };
    let numbers = part(move || cards(false));
    let strategies = part(move || {
        let cards = cards(true)?;
        let gpus = store.reading().with(|reading| world(&reading.good)).to_string();
        let view = view! {
            <h3 class="on-strategies">{t_string!(i18n, several.others, n = gpus)}</h3>
            <div class="on-numbers">{cards}</div>
        };
        Some(view.into_any())
    });
    let reasons = part(move || {
        let mut reasons: Vec<String> = found.with(|all| {
            let refused = all.iter().filter_map(|on| on.found.as_ref().err());
            refused.map(|why| words::refusal(i18n, why)).collect()
        });
        reasons.dedup();
        let lines = reasons
            .into_iter()
            .map(|why| view! { <p class="muted small">{why}</p> });
        Some(lines.collect_view().into_any())
    });
    view! {
        <section class="card several" data-testid="on-numbers" aria-busy=text(move || following.is_waiting.get().to_string())>
            <h2>{t!(i18n, several.title)}</h2>
            <p class="muted small">{text(explain)}</p>
            <div class="on-numbers">{numbers}</div>
            {strategies}
            {reasons}
        </section>
    }
}
