//! Shows the memory that a run takes before and beside its steps: of the card while the model is loaded, merged or saved, and
//! of the host. In a chunk of its own.

use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::format::gib;
use vramscope_engine::report::{HostBytes, HostUse, Occasion};
use vramscope_engine::units::Bytes;

use super::verdict::Icon;
use crate::events::Pending;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::{Key, Reading};
use crate::worker::around::AroundView;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Delay after a run, whose own questions come first.
const PAUSE: Duration = Duration::from_millis(400);

/// Lines of the card and of the host.
#[component]
pub fn AroundPanel() -> impl IntoView {
    let i18n = use_i18n();
    let shown: RwSignal<Option<AroundView>> = RwSignal::new(None);
    let is_waiting = RwSignal::new(true);
    follow(shown, is_waiting);
    let lines = part(move || {
        Some(match shown.get() {
            None => view! { <p class="muted" role="status">{t!(i18n, around.waiting)}</p> }.into_any(),
            Some(view) => tables(i18n, &view),
        })
    });
    view! {
        <section class="card around" data-testid="around" aria-busy=text(move || is_waiting.get().to_string())>
            <h2>{t!(i18n, around.title)}</h2>
            <p class="muted small">{t!(i18n, around.explain)}</p>
            {lines}
        </section>
    }
}

/// Asks after each run; a change of the entries stops it.
fn follow(shown: RwSignal<Option<AroundView>>, is_waiting: RwSignal<bool>) {
    let (simulation, reading, engine) = (Simulation::get(), Store::get().reading(), Engine::get());
    let pending = Pending::new();
    let stop = move || {
        engine.cancel(Slot::Around);
        is_waiting.try_set(true);
        pending.stop();
    };
    let data = Memo::new(move |_| reading.with(|reading| reading.good.get(Key::Data).to_owned()));
    let entries = Memo::new(move |_| reading.with(Reading::entries));
    Effect::new(move || {
        entries.track();
        stop();
    });
    Effect::new(move || {
        let data = data.get();
        let Outcome::Ready(run) = simulation.outcome.get() else {
            return;
        };
        stop();
        pending.begin(PAUSE, move || {
            let ask = Ask::Around { run: run.id, data };
            engine.ask(Slot::Around, ask, move |answer, _| {
                if let Some(Answer::Around(answer)) = answer {
                    shown.try_set(answer.open());
                }
                is_waiting.try_set(false);
            });
        });
    });
    on_cleanup(stop);
}

fn tables(i18n: Words, view: &AroundView) -> AnyView {
    let peak = view.around.host_peak(view.processes);
    let simulation = Simulation::get();
    let of_card = view.around.card.iter().enumerate().map(|(at, line)| {
        let verdict = view.verdicts.get(at).copied();
        view! {
            <tr data-testid="around-card" data-name=line.occasion.name() data-value=line.allocated.get().to_string()>
                <th scope="row">{occasion(i18n, line.occasion)}</th>
                <td>{gib(line.allocated)}</td>
                <td class=move || verdict.map(|verdict| simulation.colour(verdict))>
                    {verdict.map(|verdict| view! { <Icon verdict /> })}
                </td>
            </tr>
        }
    });
    let of_host = view
        .around
        .host
        .iter()
        .map(|line| host_row(line.what.name(), on_host(i18n, line.what).to_owned(), &line.bytes, i18n));
    let needs = match view.processes {
        1 => t_string!(i18n, around.needs).to_owned(),
        n => t_string!(i18n, around.of_all, n = n.to_string()),
    };
    let steps = simulation.outcome.with_untracked(|outcome| match outcome {
        Outcome::Ready(run) => Some(run.figures.peak_reserved),
        _ => None,
    });
    let over = steps.and_then(|steps| view.around.loading_over(steps)).map(|line| {
        let said = t_string!(i18n, around.loading_over, bytes = gib(line.reserved));
        view! { <p data-testid="loading-over">{said}</p> }
    });
    view! {
        {over}
        <table class="around-lines">
            <caption>{t!(i18n, around.card)}</caption>
            <tbody>{of_card.collect_view()}</tbody>
        </table>
        <table class="around-lines">
            <caption>{t!(i18n, around.host)}</caption>
            <tbody>{of_host.collect_view()} {host_row("needed", needs, &peak, i18n)}</tbody>
        </table>
    }
    .into_any()
}

fn host_row(name: &'static str, label: String, bytes: &HostBytes, i18n: Words) -> AnyView {
    let [least, most] = bytes.range.map(gib);
    let range = (least != most).then(|| t_string!(i18n, around.range, least = least, most = most));
    let is_mapped = bytes.mapped > Bytes::ZERO;
    let files = is_mapped.then(|| t_string!(i18n, around.files, bytes = gib(bytes.mapped)));
    let notes: Vec<String> = range.into_iter().chain(files).collect();
    view! {
        <tr data-testid="around-host" data-name=name data-value=bytes.own.get().to_string()>
            <th scope="row">{label}</th>
            <td>{gib(bytes.own)}</td>
            <td class="muted small">{notes.join("; ")}</td>
        </tr>
    }
    .into_any()
}

fn occasion(i18n: Words, of: Occasion) -> &'static str {
    match of {
        Occasion::LoadMoved => t_string!(i18n, around.load_moved),
        Occasion::LoadMapped => t_string!(i18n, around.load_mapped),
        Occasion::LoadCast => t_string!(i18n, around.load_cast),
        Occasion::LoadQuantised => t_string!(i18n, around.load_quantised),
        Occasion::LoadPartitioned => t_string!(i18n, around.load_partitioned),
        Occasion::Merge => t_string!(i18n, around.merge),
        Occasion::Gather => t_string!(i18n, around.gather),
    }
}

fn on_host(i18n: Words, what: HostUse) -> &'static str {
    match what {
        HostUse::Process => t_string!(i18n, around.process),
        HostUse::Loading => t_string!(i18n, around.loading),
        HostUse::Pinned => t_string!(i18n, around.pinned),
        HostUse::Workers => t_string!(i18n, around.workers),
        HostUse::Offloaded => t_string!(i18n, around.offloaded),
        HostUse::Paged => t_string!(i18n, around.paged),
        HostUse::SavedModel => t_string!(i18n, around.saved_model),
        HostUse::SavedStates => t_string!(i18n, around.saved_states),
    }
}
