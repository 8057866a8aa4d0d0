//! Several GPUs as a picture: a card each, what is on it, and what moves between them in a step.

use leptos::prelude::*;
use vramscope_engine::setup::Strategy;

use super::of_one::stage;
use crate::charts::Bar;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::pages::plan::memory_bar::segments;
use crate::part::part;
use crate::simulation::Simulation;
use crate::state::Key;

/// Cards that are drawn; more are counted.
const MOST: u64 = 8;

/// Draws the cards and says what moves; nothing for one GPU.
#[component]
pub fn Picture() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    part(move || {
        let run = simulation.run()?;
        let (gpus, strategy) = simulation.entries.with_value(|entries| {
            let gpus: u64 = entries.get(Key::World).parse().ok()?;
            Some((gpus, Strategy::named(entries.get(Key::Strategy))?))
        })?;
        if run.pass.is_some() || gpus < 2 {
            return None;
        }
        // Of a pipeline one stage is simulated; of all others the first GPU, which holds no less than any other.
        let shown = stage(&run).and_then(|stage| stage.parse::<u64>().ok());
        let cards = (0..gpus.min(MOST)).map(|at| {
            let is_known = !strategy.is_pipeline() || shown == Some(at);
            let segments = if is_known { segments(i18n, &run) } else { Vec::new() };
            let is_first = at == shown.unwrap_or(0);
            view! {
                <li class="gpu-card" class:gpu-other=!is_first>
                    <span class="gpu-name">{at.to_string()}</span>
                    <Bar segments />
                </li>
            }
        });
        let more = gpus.checked_sub(MOST).filter(|more| *more > 0);
        let more = more.map(|more| view! { <li class="gpu-more muted">{format!("+ {more}")}</li> });
        let moves = moves(strategy).iter().map(|(what, how)| {
            view! {
                <li>
                    <strong>{word(i18n, what)}</strong>
                    " "
                    <span class="muted">{word(i18n, how)}</span>
                </li>
            }
        });
        let view = view! {
            <figure class="gpu-picture" data-testid="gpu-picture" aria-label=t_string!(i18n, several.picture)>
                <ol class="gpu-cards" aria-hidden="true">{cards.collect_view()} {more}</ol>
                <figcaption class="small">
                    <span class="muted">{t!(i18n, several.moves)}</span>
                    " "
                    <ul class="gpu-moves">{moves.collect_view()}</ul>
                </figcaption>
            </figure>
        };
        Some(view.into_any())
    })
}

/// What moves between the GPUs in a step, and how: keys of the phrases that say so.
const fn moves(strategy: Strategy) -> &'static [(&'static str, &'static str)] {
    match strategy {
        Strategy::Ddp | Strategy::DdpView | Strategy::Deepspeed0 => &[("gradients", "all_reduced")],
        Strategy::Zero1 => &[("gradients", "all_reduced"), ("weights", "broadcast")],
        Strategy::Deepspeed1 | Strategy::Deepspeed2 => &[("gradients", "reduced"), ("weights", "gathered_after")],
        Strategy::Fsdp | Strategy::Fsdp1 | Strategy::Deepspeed3 => &[("weights", "gathered"), ("gradients", "reduced")],
        Strategy::FsdpNoReshard | Strategy::Fsdp1NoReshard => &[("weights", "gathered_once"), ("gradients", "reduced")],
        Strategy::Tensor => &[("activations", "summed")],
        Strategy::Pipeline | Strategy::PipelineGpipe => &[("activations", "passed_on"), ("gradients", "passed_back")],
    }
}

fn word(i18n: Words, key: &str) -> &'static str {
    match key {
        "gradients" => t_string!(i18n, several.gradients),
        "weights" => t_string!(i18n, several.weights),
        "activations" => t_string!(i18n, several.activations),
        "all_reduced" => t_string!(i18n, several.all_reduced),
        "broadcast" => t_string!(i18n, several.broadcast),
        "reduced" => t_string!(i18n, several.reduced),
        "gathered" => t_string!(i18n, several.gathered),
        "gathered_once" => t_string!(i18n, several.gathered_once),
        "gathered_after" => t_string!(i18n, several.gathered_after),
        "summed" => t_string!(i18n, several.summed),
        "passed_on" => t_string!(i18n, several.passed_on),
        _ => t_string!(i18n, several.passed_back),
    }
}
