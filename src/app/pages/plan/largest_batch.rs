//! Largest micro-batch that trains.

use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::format::{gib, grouped};
use vramscope_engine::setup::Setting;
use vramscope_engine::simulate::SimulateError;
use vramscope_plan::{End, MOST_SAMPLES};

use crate::events::Pending;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{CommandLine, Store};
use crate::state::Reading;
use crate::words;
use crate::worker::batches::{Beyond, FoundBatch, LargestBatch as News, Stop};
use crate::worker::{Answer, Ask, Engine, Slot};

/// Delay after the last entry before the search starts: its simulations would delay the run's own.
const REST: Duration = Duration::from_millis(600);

/// Search for the largest micro-batch of the current entries.
#[derive(Clone, Copy)]
struct Following {
    news: RwSignal<Option<News>>,
    /// True while the search is running.
    at_work: RwSignal<bool>,
    /// True if the user stopped the search.
    stopped: RwSignal<bool>,
    engine: Engine,
    pending: Pending,
}

impl Following {
    fn new() -> Self {
        let following = Self {
            news: RwSignal::new(None),
            at_work: RwSignal::new(false),
            stopped: RwSignal::new(false),
            engine: Engine::get(),
            pending: Pending::new(),
        };
        on_cleanup(move || following.stop());
        following
    }

    /// Starts a search after a delay.
    fn ask(self, ask: Option<Ask>) {
        self.stop();
        let begin = move || {
            let Some(ask) = ask else { return };
            self.at_work.try_set(true);
            self.engine.ask(Slot::Batches, ask, move |answer, progress| {
                if let Some(Answer::Batches(news)) = answer {
                    self.news.try_set(news.open());
                }
                self.at_work.try_set(!progress.is_complete());
            });
        };
        self.news.set(None);
        self.stopped.set(false);
        self.pending.begin(REST, begin);
    }

    fn stop(self) {
        self.engine.cancel(Slot::Batches);
        self.at_work.try_set(false);
        self.pending.stop();
    }
}

/// Shows the largest micro-batch of the setup.
#[component]
pub fn LargestBatchCard() -> impl IntoView {
    let store = Store::get();
    let reading = store.reading();
    let gpus = Memo::new(move |_| reading.with(|r| r.parallel.map(|parallel| parallel.world)));
    // The entered batch does not matter: it is what the search varies.
    let ask = Memo::new(move |_| {
        let mut entries = reading.with(Reading::entries);
        entries.set(Setting::Batch, "");
        gpus.get().is_none().then_some(Ask::Batches(entries))
    });
    let chosen = Memo::new(move |_| reading.with(|reading| reading.setup.batch));
    let pick = Callback::new(move |batch: u64| store.set(Setting::Batch, batch.to_string()));
    let alone = move || gpus.get().is_none();
    view! {
        <Show when=alone fallback=move || not_for_several(gpus)>
            <LargestBatch ask chosen pick />
        </Show>
    }
}

/// Says that the search is for one GPU.
fn not_for_several(gpus: Memo<Option<u64>>) -> AnyView {
    let i18n = use_i18n();
    let words = move || t_string!(i18n, sweep.batch_several, gpus = gpus.get().unwrap_or(1).to_string());
    view! {
        <section class="card largest-batch" data-testid="largest-batch-card">
            <h2>{t!(i18n, sweep.batch_title)}</h2>
            <p class="muted small">{words}</p>
        </section>
    }
    .into_any()
}

/// Shows the largest micro-batch that trains on the card or under the limit, and what stops the next one.
#[component]
pub fn LargestBatch(
    /// Question about it; none is asked yet if there is none.
    ask: Memo<Option<Ask>>,
    /// The current batch.
    chosen: Memo<u64>,
    /// Chooses a batch.
    pick: Callback<u64>,
) -> impl IntoView {
    let i18n = use_i18n();
    let following = Following::new();
    Effect::new(move || following.ask(ask.get()));
    let answer = part(move || {
        following
            .news
            .get()
            .map(|news| answer_view(i18n, &news, (chosen, pick)))
    });
    let stop = move |_| {
        following.stop();
        following.stopped.set(true);
    };
    view! {
        <section class="card largest-batch" aria-busy=move || following.at_work.get().to_string() data-testid="largest-batch-card">
            <h2>{t!(i18n, sweep.batch_title)}</h2>
            <p class="muted small">{t!(i18n, sweep.batch_explain)}</p>
            {answer}
            <Show when=move || following.at_work.get()>
                <button type="button" class="tool" data-testid="largest-batch-stop-search" on:click=stop>
                    {t!(i18n, sweep.cancel)}
                </button>
            </Show>
            <Show when=move || following.stopped.get()>
                <button
                    type="button"
                    class="tool"
                    data-testid="largest-batch-again"
                    on:click=move |_| following.ask(ask.get_untracked())
                >
                    {t!(i18n, sweep.again)}
                </button>
            </Show>
        </section>
    }
}

fn answer_view(i18n: Words, news: &News, (chosen, pick): (Memo<u64>, Callback<u64>)) -> AnyView {
    match news {
        News::Between([good, bad]) => {
            let is_begun = *good > 0;
            let good = grouped(*good);
            let words = if !is_begun {
                t_string!(i18n, sweep.batch_begins).to_string()
            } else if *bad > MOST_SAMPLES {
                t_string!(i18n, sweep.batch_working, good = good).to_string()
            } else {
                t_string!(i18n, sweep.batch_trying, good = good, bad = grouped(*bad)).to_string()
            };
            view! { <p class="muted" role="status">{words}</p> }.into_any()
        }
        News::Refused(why) => {
            let words = match why {
                SimulateError::LengthsDecide => t_string!(i18n, sweep.batch_lengths).to_string(),
                why => words::setup_refusal(i18n, why),
            };
            view! { <p data-testid="largest-batch-refused">{words}</p> }.into_any()
        }
        News::Found(found) => {
            let batch = found.batch;
            let of = found.batch.to_string();
            let next =
                next(i18n, found).map(|words| view! { <p class="muted" data-testid="largest-batch-next">{words}</p> });
            let label = t_string!(i18n, sweep.batch_use, batch = grouped(batch)).to_string();
            let choose = (batch > 0).then(|| {
                view! {
                    <button
                        type="button"
                        class="tool"
                        data-testid="largest-batch-use"
                        disabled=move || chosen.get() == batch
                        on:click=move |_| pick.run(batch)
                    >
                        {label}
                    </button>
                }
            });
            let beyond = found.recorded.as_ref().and_then(|recorded| beyond(i18n, recorded));
            view! {
                <p role="status" data-testid="largest-batch" data-value=of>
                    {headline(i18n, found)}
                </p>
                {next}
                {beyond}
                {choose}
            }
            .into_any()
        }
    }
}

fn headline(i18n: Words, found: &FoundBatch) -> String {
    let limit = gib(found.limit);
    let least = found.recorded.as_ref().map(|recorded| grouped(recorded.range[0]));
    match (found.reserved.filter(|_| found.batch > 0), least) {
        (None, Some(least)) => t_string!(i18n, recorded.batch_none, batch = least, limit = limit),
        (None, None) => t_string!(i18n, sweep.batch_none, limit = limit).to_string(),
        (Some(reserved), _) => t_string!(
            i18n,
            sweep.batch_trains,
            batch = grouped(found.batch),
            reserved = gib(reserved),
            limit = limit
        )
        .to_string(),
    }
}

/// Shows which batches were recorded, and the command that records others.
fn beyond(i18n: Words, recorded: &Beyond) -> Option<AnyView> {
    let [least, most] = recorded.range.map(grouped);
    let command = recorded.command.clone()?;
    let beyond = view! {
        <p class="muted">{t_string!(i18n, recorded.batch_beyond, least = least, most = most)}</p>
        <CommandLine text=command testid="copy-batch-command" />
    };
    Some(beyond.into_any())
}

/// Explains why one sample more does not train.
fn next(i18n: Words, found: &FoundBatch) -> Option<String> {
    let least = found.recorded.as_ref().map_or(0, |recorded| recorded.range[0]);
    let batch = grouped((found.batch + 1).max(least));
    match (&found.stop, &found.end) {
        (Some(stop), _) => Some(stopped(i18n, batch, stop)),
        (None, Some(End::Most)) => Some(t_string!(i18n, sweep.batch_most, batch = grouped(MOST_SAMPLES)).to_string()),
        (None, Some(End::Refused(why))) => {
            let why = words::setup_refusal(i18n, why);
            Some(t_string!(i18n, sweep.batch_refused, batch = batch, why = why).to_string())
        }
        (None, None) => None,
    }
}

fn stopped(i18n: Words, batch: String, stop: &Stop) -> String {
    let (tensor, requested, allocated) = (stop.tensor.clone(), gib(stop.requested), gib(stop.allocated));
    match stop.phase {
        None => t_string!(
            i18n,
            sweep.batch_unmade,
            tensor = tensor,
            requested = requested,
            allocated = allocated
        )
        .to_string(),
        Some(phase) => t_string!(
            i18n,
            sweep.batch_stops,
            batch = batch,
            step = stop.step.to_string(),
            phase = words::phase(i18n, phase),
            tensor = tensor,
            requested = requested,
            allocated = allocated
        )
        .to_string(),
    }
}
