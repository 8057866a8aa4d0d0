//! Note on the GPU, of several, whose figures are shown.

use leptos::prelude::*;
use vramscope_engine::setup::Strategy;

use super::picture::Picture;
use crate::i18n::{Words, t_string, use_i18n};
use crate::part::text;
use crate::simulation::Simulation;
use crate::state::{Draft, Key};
use crate::words;
use crate::worker::view::RunView;

/// Says which of several GPUs the figures on screen are of; nothing for one GPU.
#[component]
pub fn OfOne() -> impl IntoView {
    let i18n = use_i18n();
    let simulation = Simulation::get();
    let words = Signal::derive(move || {
        let run = simulation.run()?;
        simulation.entries.with_value(|entries| sentence(i18n, &run, entries))
    });
    view! {
        <p class="muted small" data-testid="of-one">
            {text(move || words.get().unwrap_or_default())}
        </p>
        <Picture />
    }
}

fn sentence(i18n: Words, run: &RunView, entries: &Draft) -> Option<String> {
    if run.pass.is_some() || !entries.has(Key::World) {
        return None;
    }
    let (gpus, name) = (entries.get(Key::World).to_owned(), entries.get(Key::Strategy));
    let strategy = words::choice(i18n, Key::Strategy, name);
    Some(match (stage(run), Strategy::named(name)) {
        (Some(stage), _) => t_string!(i18n, several.of_stage, gpus, strategy, stage),
        (None, Some(Strategy::Tensor)) => t_string!(i18n, several.of_any, gpus, strategy),
        _ => t_string!(i18n, several.of_first, gpus, strategy),
    })
}

/// Stage of a pipeline that is shown, from 0.
pub(super) fn stage(run: &RunView) -> Option<String> {
    let warning = run.warnings.iter().find(|warning| warning.code == "stages")?;
    let (_, most) = warning.args.iter().find(|(name, _)| name == "most")?;
    let digits = |c: char| c.is_ascii_digit();
    Some(
        most.chars()
            .skip_while(|c| !digits(*c))
            .take_while(|c| digits(*c))
            .collect(),
    )
}
