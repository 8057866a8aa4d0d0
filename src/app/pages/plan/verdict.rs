//! Verdict on the run.

use std::time::Duration;

use leptos::prelude::*;
use vramscope_engine::device::Device;
use vramscope_engine::format::gib;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::setup::Setting;
use vramscope_engine::units::{Bytes, Seconds};
use vramscope_engine::verdict::{Fit, Verdict};
use vramscope_launch::Grade;

use super::explain::Explained;
use crate::events::Pending;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::{part, text};
use crate::shell::Store;
use crate::simulation::Simulation;
use crate::state::{Key, left_out_words};
use crate::words;
use crate::worker::view::Card;

/// Quiet time after the last change before a screen reader announces the verdict.
const QUIET: Duration = Duration::from_millis(1200);

/// What a run is of: model and method of the entries on screen.
fn subject(i18n: Words) -> Signal<String> {
    let simulation = Simulation::get();
    Signal::derive(move || {
        // Set before each outcome.
        simulation.outcome.track();
        simulation.entries.with_value(|entries| {
            let model = entries.model_name().unwrap_or("config.json");
            let model = model.rsplit('/').next().unwrap_or(model).to_owned();
            let task = entries.get(Key::Phase);
            let how = match task {
                "train" => words::choice(i18n, Setting::Freeze.into(), entries.get(Setting::Freeze)),
                task => words::choice(i18n, Key::Phase, task),
            };
            t_string!(i18n, verdict.what, model = model, how = how).to_string()
        })
    })
}

/// Shows the verdict in words and colour, with the margin and the time of a step.
#[component]
pub fn VerdictLine(
    /// What the run is of, if it is not what the entries say.
    #[prop(optional, into)]
    what: Option<Signal<String>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let what = what.unwrap_or_else(|| subject(i18n));
    // Split off because the kind of verdict changes rarely, while its numbers update in place.
    let kind = Memo::new(move |_| {
        simulation.card().map(|card| {
            let verdict = |card: Card| (card.fit.verdict, Form::of(&card.fit), card.colour(card.fit.verdict));
            card.map(verdict)
        })
    });
    let headline = Signal::derive(move || {
        let card = simulation.card().and_then(Result::ok);
        card.map_or_else(String::new, |card| headline_of(i18n, what.get(), &card))
    });
    let step = move || {
        let ms = simulation.step_ms.get()?;
        Some(t_string!(i18n, verdict.step, time = Seconds::new(ms / 1e3).to_string()).to_string())
    };
    let line = part(move || {
        // Tracks the language: the numbers are part of a translated phrase.
        i18n.locale();
        Some(match kind.get()? {
            Ok((verdict, form, colour)) => view! {
                <div class=format!("verdict {colour}") data-testid="verdict" data-value=verdict.name()>
                    <Icon verdict />
                    <h2 class="verdict-words">{text(move || headline.get())}</h2>
                    <p class="verdict-detail">
                        <Detail form />
                        <span class="verdict-step" data-testid="verdict-step">
                            {text(move || step().map_or_else(String::new, |step| format!(" · {step}")))}
                        </span>
                    </p>
                </div>
            }
            .into_any(),
            Err(message) => view! { <p class="refusal-message">{message}</p> }.into_any(),
        })
    });
    view! {
        {line}
        <Announcer what />
    }
}

/// What the figures leave out of the run whose files were read. It stays until a person says that it is out of the run
/// too.
#[component]
pub fn NotThisRun() -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let left_out = Memo::new(move |_| store.reading().with(|reading| reading.good.left_out()));
    part(move || {
        let all = left_out.get();
        if all.is_empty() {
            return None;
        }
        let bound = match Grade::of(&all) {
            Grade::AtMost => t_string!(i18n, not_this_run.at_most),
            Grade::AtLeast => t_string!(i18n, not_this_run.at_least),
            _ => t_string!(i18n, not_this_run.unknown),
        };
        let rows = all.into_iter().map(|left| {
            let words = left_out_words(&left);
            let remove = move |_| store.edit(|draft| draft.take_out(&left));
            view! {
                <li data-testid="left-out">
                    {words}
                    " "
                    <button type="button" class="tool" data-testid="left-out-remove" on:click=remove>
                        {t!(i18n, not_this_run.remove)}
                    </button>
                </li>
            }
        });
        let rows: Vec<_> = rows.collect();
        let view = view! {
            <div class="not-this-run" data-testid="not-this-run">
                <p>{t!(i18n, not_this_run.title)} " " {bound}</p>
                <ul>{rows}</ul>
            </div>
        };
        Some(view.into_any())
    })
}

/// Says that the card is not driven by CUDA, whose steps are simulated; nothing for a card that is.
#[component]
pub fn NotCuda() -> impl IntoView {
    let i18n = use_i18n();
    let words = Simulation::get().text(move |run| {
        let device = run.card.as_ref().ok().and_then(|card| Device::by_name(&card.name).ok());
        let other = device.filter(|device| !device.vendor.is_driven_by_cuda());
        other.map_or_else(String::new, |device| {
            t_string!(i18n, plan.not_cuda, maker = device.vendor.name()).to_string()
        })
    });
    view! { <p class="muted small image-positions" data-testid="not-cuda">{text(move || words.get())}</p> }
}

/// Announces the verdict to screen readers after changes, but not at each keystroke.
#[component]
fn Announcer(what: Signal<String>) -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let spoken = RwSignal::new(String::new());
    let quiet = Pending::new();
    let words = Memo::new(move |_| {
        let card = simulation.card()?.ok()?;
        Some(format!(
            "{}. {}",
            headline_of(i18n, what.get(), &card),
            detail(i18n, &card.fit)
        ))
    });
    // Skips the first verdict, which is read along with the page.
    Effect::watch(
        move || words.get(),
        move |words, _, _| {
            let words = words.clone();
            quiet.begin(QUIET, move || spoken.set(words.unwrap_or_default()));
        },
        false,
    );
    view! {
        <p class="offscreen" role="status" data-testid="announcement">
            {text(move || spoken.get())}
        </p>
    }
}

/// The verdict on what is named.
fn headline_of(i18n: Words, what: String, card: &Card) -> String {
    let name = words::card(i18n, card);
    let verdict = match card.fit.verdict {
        _ if may_run_out(card) => t_string!(i18n, verdict.may_oom_of, what = what, card = name),
        Verdict::Fits => t_string!(i18n, verdict.fits_of, what = what, card = name),
        Verdict::Tight => t_string!(i18n, verdict.tight_of, what = what, card = name),
        Verdict::Oom => t_string!(i18n, verdict.oom_of, what = what, card = name),
    };
    of_whole_run(i18n, card, verdict.to_string())
}

/// Returns true if the run needs at most as much as is shown, which does not fit: then it may or may not run out of memory.
fn may_run_out(card: &Card) -> bool {
    let grade = Grade::of(&card.left_out);
    matches!(grade, Grade::AtMost | Grade::Between) && grade.settles(card.fit.verdict).is_none()
}

/// A verdict, with a word of caution where what is left out of the run may turn it.
fn of_whole_run(i18n: Words, card: &Card, verdict: String) -> String {
    let is_settled = Grade::of(&card.left_out).settles(card.fit.verdict).is_some();
    match is_settled || may_run_out(card) {
        true => verdict,
        false => t_string!(i18n, verdict.partial, verdict = verdict).to_string(),
    }
}

/// What stays free, or what is missing, in the fewest words.
pub(super) fn margin(i18n: Words, fit: &Fit) -> String {
    match Form::of(fit) {
        Form::Spare => t_string!(i18n, verdict.free, spare = gib(fit.spare())).to_string(),
        Form::Short | Form::Squeezed => t_string!(i18n, verdict.over, short = gib(fit.short())).to_string(),
        Form::Range => detail(i18n, fit),
    }
}

/// How far the figures are to be trusted: simulated to the byte, or a bound of a run of which something is left out.
#[component]
pub fn GradeMark() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let grade = Memo::new(move |_| {
        let card = simulation.card()?.ok()?;
        // Of compiled steps the verdict itself gives a range.
        card.fit.compiled.is_none().then(|| Grade::of(&card.left_out))
    });
    // The GPU's pace decides what such a run reserves (its warning says how far): to the byte is what it allocates.
    let is_paced = Memo::new(move |_| {
        let run = simulation.run();
        run.is_some_and(|run| run.warnings.iter().any(|warning| warning.code == "streams"))
    });
    part(move || {
        let (name, words) = match grade.get()? {
            Grade::Exact if is_paced.get() => ("allocated", t_string!(i18n, verdict.grade_allocated)),
            grade => grade_words(i18n, grade),
        };
        Some(view! { <span class="badge" data-testid="grade" data-value=name>{words}</span> }.into_any())
    })
}

/// Name of a grade, by which tests and scripts find it, and its words.
pub fn grade_words(i18n: Words, grade: Grade) -> (&'static str, &'static str) {
    match grade {
        Grade::Exact => ("exact", t_string!(i18n, verdict.grade_exact)),
        Grade::AtMost => ("at_most", t_string!(i18n, verdict.grade_at_most)),
        Grade::AtLeast => ("at_least", t_string!(i18n, verdict.grade_at_least)),
        _ => ("unknown", t_string!(i18n, verdict.grade_unknown)),
    }
}

/// Verdict on a card in words; of a run of which something is left out, it says so.
pub fn headline(i18n: Words, card: &Card) -> String {
    of_whole_run(i18n, card, verdict_words(i18n, card))
}

fn verdict_words(i18n: Words, card: &Card) -> String {
    let name = words::card(i18n, card);
    match card.fit.verdict {
        _ if may_run_out(card) => t_string!(i18n, verdict.may_oom, card = name).to_string(),
        Verdict::Fits => t_string!(i18n, verdict.fits, card = name).to_string(),
        Verdict::Tight => t_string!(i18n, verdict.tight, card = name).to_string(),
        Verdict::Oom => t_string!(i18n, verdict.oom, card = name).to_string(),
    }
}

/// Memory needed, memory available, and the difference, in words.
pub fn detail(i18n: Words, fit: &Fit) -> String {
    let (needed, room) = (gib(fit.needed), gib(fit.room));
    let words = match Form::of(fit) {
        Form::Range => {
            let [low, high] = fit.compiled.unwrap_or_default().map(gib);
            t_string!(
                i18n,
                verdict.compiled,
                needed = needed,
                room = room,
                low = low,
                high = high
            )
        }
        Form::Short => t_string!(
            i18n,
            verdict.short,
            needed = needed,
            room = room,
            short = gib(fit.short())
        ),
        Form::Squeezed => t_string!(
            i18n,
            verdict.squeezed,
            live = gib(fit.live),
            room = room,
            needed = needed,
            short = gib(fit.short())
        ),
        Form::Spare => t_string!(
            i18n,
            verdict.spare,
            needed = needed,
            room = room,
            spare = gib(fit.spare())
        ),
    };
    words.to_string()
}

/// What the sentence below the verdict tells beside memory needed and available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What stays free.
    Spare,
    /// What is missing.
    Short,
    /// Live bytes, which fit, and the part of PyTorch's cache that does not fit beside them.
    Squeezed,
    /// What compiled steps took beside eager ones.
    Range,
}

impl Form {
    const fn of(fit: &Fit) -> Self {
        match (fit.compiled, fit.verdict) {
            (Some(_), _) => Self::Range,
            (None, Verdict::Oom) => Self::Short,
            (None, _) if fit.needed.get() > fit.room.get() => Self::Squeezed,
            (None, _) => Self::Spare,
        }
    }
}

/// Memory needed, memory available and the difference, each with its derivation.
#[component]
fn Detail(form: Form) -> impl IntoView {
    let i18n = use_i18n();
    let needed = number(Quantity::Needed, |fit| fit.needed);
    let room = number(Quantity::Room, |fit| fit.room);
    match form {
        Form::Short => {
            let short = number(Quantity::Short, Fit::short);
            t!(i18n, verdict.short, needed = needed, room = room, short = short).into_any()
        }
        Form::Squeezed => {
            let short = number(Quantity::Short, Fit::short);
            let live = Simulation::get().text(|run| {
                let card = run.card.as_ref();
                card.map_or_else(|_| String::new(), |card| gib(card.fit.live))
            });
            let live = text(move || live.get());
            t!(
                i18n,
                verdict.squeezed,
                live = live,
                room = room,
                needed = needed,
                short = short
            )
            .into_any()
        }
        Form::Spare => {
            let spare = number(Quantity::Spare, Fit::spare);
            t!(i18n, verdict.spare, needed = needed, room = room, spare = spare).into_any()
        }
        Form::Range => {
            let [low, high] = [0, 1].map(|end| {
                let simulation = Simulation::get();
                text(move || {
                    let card = simulation.card().and_then(Result::ok);
                    let range = card.and_then(|card| card.fit.compiled);
                    range.map_or_else(String::new, |range| gib(range[end]))
                })
            });
            t!(
                i18n,
                verdict.compiled,
                needed = needed,
                room = room,
                low = low,
                high = high
            )
            .into_any()
        }
    }
}

fn number(quantity: Quantity, of: fn(&Fit) -> Bytes) -> AnyView {
    let text = Simulation::get().text(move |run| {
        let card = run.card.as_ref();
        card.map_or_else(|_| String::new(), |card| gib(of(&card.fit)))
    });
    view! { <Explained quantity text /> }.into_any()
}

/// Icon of the verdict, so that it is not conveyed by colour alone.
#[component]
pub fn Icon(verdict: Verdict) -> impl IntoView {
    let path = match verdict {
        Verdict::Fits => "M7 12.5l3.5 3.5 7-8",
        Verdict::Tight => "M12 6.5v7M12 17v.5",
        Verdict::Oom => "M8 8l8 8M16 8l-8 8",
    };
    view! {
        <svg class="verdict-icon" viewBox="0 0 24 24" aria-hidden="true">
            <circle cx="12" cy="12" r="11" />
            <path d=path />
        </svg>
    }
}
