//! A single change, of a setup or of a recorded step.

use leptos::prelude::*;
use vramscope_engine::format::{difference, gib, rounds_to_nothing};
use vramscope_engine::report::Phase;
use vramscope_engine::report::derivation::Quantity;
use vramscope_engine::units::Bytes;
use vramscope_engine::verdict::Verdict;
use vramscope_plan::Effect;

use crate::i18n::{Words, t_string, use_i18n};
use crate::pages::plan::explain::Explained;
use crate::simulation::Simulation;
use crate::state::Draft;
use crate::words;

/// Reason for having no effect of a change.
#[derive(Debug, Clone)]
pub struct NoEffect {
    /// True if the run may well work, and is only not simulated.
    pub is_only_unsimulated: bool,
    /// The reason, in the person's language.
    pub reason: String,
}

/// A change: a button that applies it, its effect on the memory with a derivation, and the verdict afterwards.
#[component]
pub fn Changed(
    /// Entry and value, such as `ckpt=full`.
    name: String,
    /// Value in the words of the controls.
    label: String,
    /// Effect of the change, or the reason for having none.
    effect: Result<Effect, NoEffect>,
    /// Phase that holds the peak before the change.
    holder: Phase,
    /// Words beside the value, in place of those about the effect on the peak.
    #[prop(optional_no_strip)]
    note: Option<String>,
    /// Entries after the change.
    entries: Draft,
    /// Applies the change.
    pick: Callback<()>,
) -> impl IntoView {
    let i18n = use_i18n();
    let is_unsimulated = effect.as_ref().is_err_and(|why| why.is_only_unsimulated);
    let bytes = effect.as_ref().ok().map(|effect| effect.difference);
    let verdict = effect.as_ref().ok().and_then(|effect| effect.verdict);
    let note = note.or_else(|| self::note(i18n, &effect, holder));
    view! {
        <li class=format!("what-if-line {}", class(bytes)) class:what-if-unsimulated=is_unsimulated>
            <button
                type="button"
                class="what-if-row"
                data-testid="what-if-row"
                data-name=name
                data-value=bytes.map(|b| b.to_string())
                disabled=bytes.is_none()
                on:click=move |_| pick.run(())
            >
                <Sign bytes />
                <span class="what-if-value">{label}</span>
                <span class="what-if-note">{note}</span>
            </button>
            {bytes
                .map(|bytes| {
                    let changed = Some(entries.clone());
                    view! {
                        <span class="what-if-bytes">
                            <Explained quantity=Quantity::Change changed text=difference(bytes) />
                        </span>
                    }
                })}
            {verdict.map(|verdict| view! { <Then verdict /> })}
        </li>
    }
}

fn class(bytes: Option<i64>) -> &'static str {
    match bytes {
        None => "what-if-impossible",
        Some(bytes) if rounds_to_nothing(bytes) => "what-if-nothing",
        Some(..0) => "what-if-saves",
        Some(_) => "what-if-costs",
    }
}

/// Icon for the direction of a change, so that it is not conveyed by colour alone.
#[component]
fn Sign(bytes: Option<i64>) -> impl IntoView {
    let path = match class(bytes) {
        "what-if-saves" => "M1.5 3h7L5 8.5z",
        "what-if-costs" => "M1.5 7h7L5 1.5z",
        "what-if-nothing" => "M1.5 4.25h7v1.5h-7z",
        _ => "M2 3l1-1 5 5-1 1zM7 2l1 1-5 5-1-1z",
    };
    view! {
        <svg class="what-if-sign" viewBox="0 0 10 10" aria-hidden="true">
            <path d=path />
        </svg>
    }
}

/// Verdict on the changed run.
#[component]
fn Then(verdict: Verdict) -> impl IntoView {
    let i18n = use_i18n();
    let words = match verdict {
        Verdict::Fits => t_string!(i18n, what_if.fits).to_string(),
        Verdict::Tight => t_string!(i18n, what_if.tight).to_string(),
        Verdict::Oom => t_string!(i18n, what_if.oom).to_string(),
    };
    let simulation = Simulation::get();
    let class = move || format!("what-if-then {}", simulation.colour(verdict));
    view! { <span class=class title=words.clone() role="img" aria-label=words></span> }
}

/// Explains why nothing is saved, or what else changes.
fn note(i18n: Words, effect: &Result<Effect, NoEffect>, holding: Phase) -> Option<String> {
    let effect = match effect {
        Ok(effect) => effect,
        Err(NoEffect {
            is_only_unsimulated,
            reason,
        }) => {
            let reason = reason.clone();
            return Some(match is_only_unsimulated {
                true => t_string!(i18n, what_if.unsimulated, reason = reason),
                false => t_string!(i18n, what_if.impossible, reason = reason),
            });
        }
    };
    let holder = words::phase(i18n, holding);
    if rounds_to_nothing(effect.difference) {
        return Some(match lowered_elsewhere(effect, holding) {
            Some((phase, bytes)) => {
                let other = words::phase(i18n, phase);
                t_string!(
                    i18n,
                    what_if.elsewhere,
                    other = other,
                    bytes = gib(bytes),
                    phase = holder
                )
                .to_string()
            }
            None => t_string!(i18n, what_if.untouched, phase = holder).to_string(),
        });
    }
    let moves = effect.peak_phase != holding;
    moves.then(|| t_string!(i18n, what_if.moves, phase = words::phase(i18n, effect.peak_phase)).to_string())
}

/// Phase that a change lowers most among those that do not hold the peak.
fn lowered_elsewhere(effect: &Effect, holder: Phase) -> Option<(Phase, Bytes)> {
    let others = effect
        .phases
        .iter()
        .filter(|(phase, bytes)| *phase != holder && *bytes < 0);
    let (phase, bytes) = others.min_by_key(|(_, bytes)| *bytes)?;
    (!rounds_to_nothing(*bytes)).then(|| (*phase, Bytes::new(bytes.unsigned_abs())))
}
