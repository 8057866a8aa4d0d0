//! The setup on screen as the file that starts it in a training tool.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_plan::export::ExportFormat;
use vramscope_plan::{Choice, Plan};

use super::exports::{commented, names};
use crate::charts::save_text;
use crate::i18n::{t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{CopyButton, Store};
use crate::simulation::Simulation;
use crate::worker::view::RunView;

/// Menu of the tools that take the setup, the file, and buttons that copy and save it.
#[component]
pub fn LaunchFile() -> impl IntoView {
    let i18n = use_i18n();
    let (store, simulation) = (Store::get(), Simulation::get());
    let made = Memo::new(move |_| {
        let run = simulation.run()?;
        let model = simulation
            .model
            .with(|model| model.as_ref().map(|model| model.name.clone()))?;
        Some(Arc::new(Made::of(store, model, &run)))
    });
    let chosen = RwSignal::new(None::<String>);
    // Until the user selects a tool, show the first one that takes the setup.
    let form = Memo::new(move |_| {
        let takes = made.get()?.takes();
        let wanted = chosen.get();
        let same = takes.iter().find(|form| Some(form.name()) == wanted.as_deref());
        same.or(takes.first()).copied()
    });
    let written = Memo::new(move |_| Some(commented(store, form.get()?, made.get()?.write(form.get()?).ok()?)));
    let body = part(move || {
        let takes = made.get()?.takes();
        let view = match takes.is_empty() {
            true => view! { <p class="muted" data-testid="launch-file-none">{t!(i18n, make_fit.none)}</p> }.into_any(),
            false => view! {
                <Tools takes form chosen written />
                <pre
                    class="command"
                    tabindex="0"
                    aria-label=move || t_string!(i18n, make_fit.file)
                    data-testid="launch-file-text"
                >
                    <code>{move || written.get()}</code>
                </pre>
            }
            .into_any(),
        };
        Some(view)
    });
    view! {
        <section class="make-fit" aria-label=move || t_string!(i18n, make_fit.file) data-testid="launch-file-panel">
            {body}
        </section>
    }
}

/// Menu of the tools, and the buttons.
#[component]
fn Tools(
    /// Tools that take the setup.
    takes: Vec<ExportFormat>,
    /// The tool on screen.
    form: Memo<Option<ExportFormat>>,
    /// Name of the tool that was chosen.
    chosen: RwSignal<Option<String>>,
    /// Its file.
    written: Memo<Option<String>>,
) -> impl IntoView {
    let i18n = use_i18n();
    let text = move || written.get_untracked().unwrap_or_default();
    let save = move |_| {
        if let Some(form) = form.get_untracked() {
            save_text(&text(), "text/plain", names(form).1);
        }
    };
    let now = form.get();
    let options = takes.into_iter().map(|form| {
        view! { <option value=form.name() selected=Some(form) == now>{names(form).0}</option> }
    });
    let options: Vec<_> = options.collect();
    view! {
        <div class="make-fit-head">
            <label class="tool-select">
                <span class="offscreen">{t!(i18n, recommend.tool)}</span>
                <select
                    data-testid="launch-file-tool"
                    on:change:target=move |event| chosen.set(Some(event.target().value()))
                >
                    {options}
                </select>
            </label>
            <div class="export-tools">
                <CopyButton text label=|i18n| t_string!(i18n, make_fit.copy) testid="launch-file-copy" />
                <button type="button" class="tool" data-testid="launch-file-save" on:click=save>
                    {t!(i18n, make_fit.save)}
                </button>
            </div>
        </div>
    }
}

/// The setup as a plan that changes nothing: what is exported is a plan's choice.
#[derive(PartialEq)]
struct Made(Plan);

impl Made {
    fn of(store: Store, model: String, run: &RunView) -> Self {
        let reading = store.reading().get();
        let mut setup = reading.setup;
        setup.seq = run.inputs.seq;
        let choice = Choice::given(
            setup,
            reading.parallel,
            run.figures.peak_allocated,
            run.figures.peak_reserved,
        );
        let card = run.card.as_ref().ok();
        let limit = card.map_or(run.figures.peak_reserved, |card| card.fit.room);
        Self(Plan::given(model, card.map(|card| card.name.clone()), limit, choice))
    }

    fn write(&self, form: ExportFormat) -> Result<String, String> {
        let choice = self.0.recommended.as_ref().ok_or_else(String::new)?;
        form.write(&self.0, choice)
    }

    fn takes(&self) -> Vec<ExportFormat> {
        let all = ExportFormat::ALL.into_iter();
        all.filter(|form| self.write(*form).is_ok()).collect()
    }
}
