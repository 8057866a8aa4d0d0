//! Controls of the settings that apply to the model, the setup and the task, group by group.

use leptos::prelude::*;
use vramscope_engine::Model;
use vramscope_engine::model::Takes;
use vramscope_engine::setup::{Group, Setting};

use super::controls::{Folded, FoldedName};
use crate::models::Models;
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::{Key, Reading, Source, Task};
use crate::widgets::{Control, Number, choices};

/// What decides which settings are shown.
#[derive(Clone, Copy)]
pub struct Shown {
    takes: Memo<Takes>,
    reading: Memo<Reading>,
}

impl Shown {
    /// Follows the entries.
    pub fn new() -> Self {
        Self {
            takes: takes(),
            reading: Store::get().reading(),
        }
    }

    /// Returns true if the model reads text; reactive.
    pub fn has_text(self) -> bool {
        self.takes.get().text
    }

    /// Choices of a setting that apply to the model; reactive.
    pub fn choices(self, setting: Setting) -> Signal<Vec<&'static str>> {
        Signal::derive(move || choices(setting, Some(self.takes.get())))
    }

    /// Returns true if a setting applies; reactive.
    pub fn has(self, setting: Setting) -> bool {
        let declared = setting.declaration();
        let is_used = |reading: &Reading| {
            let is_of_task = !declared.is_of_training || reading.task == Task::Train;
            is_of_task && declared.depends.met_by(&reading.setup)
        };
        declared.needs.met_by(self.takes.get()) && self.reading.with(is_used)
    }
}

/// Properties that decide which entries are shown. A run says those of its model where the code of the model's family is
/// not here yet, so that the entries do not change after the run is on screen. All entries are shown until then. The model
/// is read again only when its source changes.
fn takes() -> Memo<Takes> {
    let reading = Store::get().reading();
    let source = Memo::new(move |_| reading.with(|r| r.source.clone()));
    let everything = Takes {
        text: true,
        image_count: true,
        text_alone: false,
        image_size: true,
        grid: false,
        frames: false,
        parts: true,
        checkpointing: true,
    };
    let models = Models::get();
    let outcome = Simulation::get().outcome;
    let of_run = move || {
        outcome.with(|outcome| match outcome {
            Outcome::Ready(run) => Some(run.inputs.takes),
            _ => None,
        })
    };
    Memo::new(move |last: Option<&Takes>| {
        let model = source.with(|source| {
            models.read(source, || match source {
                Source::Catalogue(name) => Model::from_catalogue(name),
                Source::Config(text) => Model::from_config(text),
            })
        });
        let now = model.and_then(Result::ok).map(|model| model.takes());
        now.or_else(of_run).or(last.copied()).unwrap_or(everything)
    })
}

/// Control of the sequence length. An empty one stands for the model's own, which the run tells.
#[component]
pub fn SequenceLength() -> impl IntoView {
    let declared = Setting::Seq.declaration();
    let placeholder = Simulation::get().text(|run| run.inputs.seq.to_string());
    view! { <Number key=Setting::Seq step=declared.step least=declared.start placeholder /> }
}

/// Controls of a group: short ones in pairs, all others below each other.
#[component]
pub fn Settings(
    /// The group.
    of: Group,
    /// What is shown.
    shown: Shown,
) -> impl IntoView {
    let control = move |setting: Setting| {
        let is_shown = Memo::new(move |_| shown.has(setting));
        view! {
            <Show when=move || is_shown.get()>
                {match setting {
                    Setting::Seq => view! { <SequenceLength /> }.into_any(),
                    _ => view! { <Control of=setting takes=shown.takes /> }.into_any(),
                }}
            </Show>
        }
    };
    let controls = of.settings().map(control).collect_view();
    match of {
        Group::Batch | Group::Images | Group::Adapters => view! { <div class="pair">{controls}</div> }.into_any(),
        _ => controls.into_any(),
    }
}

/// Groups of settings that can be folded away; absent while none of them applies.
#[component]
pub fn FoldedSettings(
    /// Name of the groups together.
    name: FoldedName,
    /// The groups.
    of: &'static [Group],
    /// What is shown.
    shown: Shown,
) -> impl IntoView {
    let settings = move || of.iter().copied().flat_map(Group::settings);
    let is_any = Memo::new(move |_| settings().any(|setting| shown.has(setting)));
    let keys = move || settings().map(Key::Setting).collect::<Vec<_>>();
    let groups = move || {
        of.iter()
            .map(|group| view! { <Settings of=*group shown /> })
            .collect_view()
    };
    view! {
        <Show when=move || is_any.get()>
            <Folded name keys=keys()>{groups()}</Folded>
        </Show>
    }
}
