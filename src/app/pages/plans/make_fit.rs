//! Three setups that fit, nearest, fastest and smallest, searched for in place beside a verdict that says no.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::Setup;
use vramscope_engine::format::gib;
use vramscope_engine::setup::Setting;
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_plan::{Choice, Plan};

use super::copy_export::CopyExport;
use super::entries::name;
use super::page::PlansState;
use super::refused::refused;
use super::searched::Progress;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::pages::plan::{Opened, shown};
use crate::part::{part, text};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Key, Route};
use crate::words;

/// Searches at once, and shows what was found.
#[component]
pub fn MakeFit() -> impl IntoView {
    let i18n = use_i18n();
    let state = PlansState::provide();
    let is_open = expect_context::<Opened>().make_fit;
    let store = Store::get();
    let full = move || Route::Recommend.fragment(&store.address().draft.to_query());
    // Setups differ in how samples are divided over micro-batches, and keep how many a step has.
    state.search_with(|draft| {
        let number = |setting: Setting| draft.get(setting).parse::<u64>().unwrap_or(1);
        let samples = number(Setting::Batch) * number(Setting::Accum);
        draft.set(Key::Effective, samples.to_string());
        draft.set(Key::Open, "");
    });
    let found = part(move || {
        let news = state.news.get()?;
        if let Some(why) = &news.refused {
            return Some(view! { <p class="refusal-message" role="alert">{refused(i18n, why)}</p> }.into_any());
        }
        let plan = news.plan.clone().filter(|_| news.is_whole)?;
        Some(match Suggestions::of(&plan) {
            Some(suggestions) => view! { <SuggestionCards plan=Arc::new(plan) suggestions /> }.into_any(),
            None => no_fit_view(i18n, &plan),
        })
    });
    view! {
        <section class="make-fit" aria-label=move || t_string!(i18n, make_fit.go) data-testid="make-fit-panel">
            <div class="make-fit-head">
                <h3>{t!(i18n, make_fit.title)}</h3>
                <a href=full data-testid="nav/recommend">{t!(i18n, make_fit.full)}</a>
                <button type="button" class="tool" data-testid="make-fit-close" on:click=move |_| is_open.set(false)>
                    {t!(i18n, make_fit.close)}
                </button>
            </div>
            <Progress />
            {found}
        </section>
    }
}

/// The setups to choose from, each with what distinguishes it.
struct Suggestions(Vec<(Choice, Vec<Criterion>)>);

/// Quality in which a setup is the best of those found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Criterion {
    /// Changes least of what was asked.
    Nearest,
    /// Takes the least time for a sample.
    Fastest,
    /// Needs the least memory.
    Smallest,
}

impl Suggestions {
    /// Chooses among the setups of a plan, each once; `None` if none fits. One that is no faster or smaller than another
    /// by what is shown of it is left out: its criterion is the other's too.
    fn of(plan: &Plan) -> Option<Self> {
        let mut suggestions: Vec<(Choice, Vec<Criterion>)> = Vec::new();
        for (choice, criterion) in [
            (plan.nearest_fit(), Criterion::Nearest),
            (plan.fastest(), Criterion::Fastest),
            (plan.smallest(), Criterion::Smallest),
        ] {
            let Some(choice) = choice else { continue };
            let is_as_good = |known: &Choice| known.setup == choice.setup || criterion.is_equal(known, choice);
            match suggestions.iter_mut().find(|(known, _)| is_as_good(known)) {
                Some((_, criteria)) => criteria.push(criterion),
                None => suggestions.push((choice.clone(), vec![criterion])),
            }
        }
        (!suggestions.is_empty()).then_some(Self(suggestions))
    }
}

#[component]
fn SuggestionCards(plan: Arc<Plan>, suggestions: Suggestions) -> impl IntoView {
    let i18n = use_i18n();
    let setups = suggestions.0.iter().map(|(choice, _)| &choice.setup);
    let open = Arc::new(differing(&plan.asked, setups));
    let cards = suggestions.0.into_iter();
    let cards = cards
        .map(|(choice, criteria)| view! { <SuggestionCard plan=plan.clone() choice criteria open=open.clone() /> });
    view! {
        <ul class="make-fit-setups">{cards.collect_view()}</ul>
        <p class="muted small">{t!(i18n, make_fit.estimate)}</p>
    }
}

/// Settings in which some setup differs from the asked one.
fn differing<'a>(asked: &Setup, setups: impl Iterator<Item = &'a Setup>) -> Vec<Setting> {
    let setups: Vec<_> = setups.collect();
    let differs = |setting: &&Setting| setups.iter().any(|setup| setting.of(setup) != setting.of(asked));
    Setting::ALL.iter().filter(differs).copied().collect()
}

/// A setup: what distinguishes it, what it changes, what it costs, and the button that applies it.
#[component]
fn SuggestionCard(
    plan: Arc<Plan>,
    choice: Choice,
    criteria: Vec<Criterion>,
    /// Settings that this setup or another one on offer changes: what another one changed is taken back.
    open: Arc<Vec<Setting>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let changes = changes(&plan, &choice);
    let card = Simulation::get().card().and_then(Result::ok);
    let room = card.map_or(plan.limit, |card| card.fit.room);
    let rows = changes.iter().map(|(setting, from, to)| {
        let key = Key::Setting(*setting);
        let change = format!("{} → {}", shown(i18n, key, from.clone()), shown(i18n, key, to.clone()));
        view! { <div><dt>{name(i18n, key.name())}</dt><dd>{change}</dd></div> }
    });
    let rows: Vec<_> = rows.collect();
    let texts: Arc<Vec<(Setting, String)>> = Arc::new(
        open.iter()
            .map(|setting| (*setting, setting.of(&choice.setup).text()))
            .collect(),
    );
    let applied = {
        let texts = texts.clone();
        Memo::new(move |_| texts.iter().all(|(setting, text)| store.text(*setting) == *text))
    };
    let apply = move |_| {
        store.edit(|draft| {
            texts
                .iter()
                .for_each(|(setting, text)| draft.set(*setting, text.clone()))
        });
        // What changed is above.
        if let Ok(Some(headline)) = document().query_selector(".headline") {
            headline.scroll_into_view();
        }
    };
    let value = serde_json::to_string(&choice).unwrap_or_default();
    let figures = figures(i18n, &plan, &choice, room);
    let words = criteria
        .iter()
        .map(|criterion| criterion.name(i18n))
        .collect::<Vec<_>>()
        .join(" · ");
    view! {
        <li class="make-fit-setup" data-testid="make-fit-setup" data-value=value>
            <h4>{words}</h4>
            <dl>{rows}</dl>
            <p class="muted small">{figures}</p>
            <button type="button" class="primary" data-testid="make-fit-apply" aria-disabled=text(move || applied.get().to_string()) on:click=apply>
                {move || match applied.get() {
                    true => t_string!(i18n, make_fit.applied),
                    false => t_string!(i18n, make_fit.apply),
                }}
            </button>
            <Show when=move || applied.get()>
                <CopyExport plan=plan.clone() choice=choice.clone() />
            </Show>
        </li>
    }
}

impl Criterion {
    /// Returns true if two setups look the same in this quality.
    fn is_equal(self, a: &Choice, b: &Choice) -> bool {
        let rate = |choice: &Choice| choice.samples_per_s.map(|rate| format!("{rate:.2}"));
        match self {
            Self::Nearest => false,
            Self::Fastest => rate(a) == rate(b),
            Self::Smallest => gib(a.reserved()) == gib(b.reserved()),
        }
    }

    fn name(self, i18n: Words) -> &'static str {
        match self {
            Self::Nearest => t_string!(i18n, make_fit.nearest),
            Self::Fastest => t_string!(i18n, make_fit.fastest),
            Self::Smallest => t_string!(i18n, make_fit.smallest),
        }
    }
}

/// Settings in which a setup differs from what was asked, each with both texts.
fn changes(plan: &Plan, choice: &Choice) -> Vec<(Setting, String, String)> {
    let of = |setting: &Setting| {
        let (from, to) = (setting.of(&plan.asked).text(), setting.of(&choice.setup).text());
        (from != to).then_some((*setting, from, to))
    };
    Setting::ALL.iter().filter_map(of).collect()
}

/// Memory and time of a setup. Memory is counted as in the verdict: with what lies outside PyTorch, of all that the card
/// has.
fn figures(i18n: Words, plan: &Plan, choice: &Choice, room: Bytes) -> String {
    let outside = room.saturating_sub(plan.limit);
    let (needed, room) = (gib(choice.reserved() + outside), gib(room));
    let mut all = vec![t_string!(i18n, make_fit.needs, needed = needed, room = room).to_string()];
    if let (Some(ms), Some(rate)) = (choice.step_ms, choice.samples_per_s) {
        let step = Seconds::new(ms / 1e3).to_string();
        all.push(t_string!(i18n, make_fit.speed, step = step, rate = format!("{rate:.2}")).to_string());
    }
    if choice.distance == 0 {
        all.push(t_string!(i18n, recommend.same).to_string());
    }
    all.join(" · ")
}

/// Says how far the nearest setup is, and what kinds of tensors take its memory.
fn no_fit_view(i18n: Words, plan: &Plan) -> AnyView {
    let nearest = plan.nearest.as_ref().map(|nearest| {
        let phase = words::phase(i18n, nearest.phase);
        t_string!(i18n, recommend.short, short = gib(nearest.short), phase = phase).to_string()
    });
    view! {
        <p data-testid="make-fit-nothing">
            <strong>{t!(i18n, recommend.nothing)}</strong>
            " "
            {nearest}
            " "
            {t!(i18n, make_fit.elsewhere)}
        </p>
    }
    .into_any()
}
