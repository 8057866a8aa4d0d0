//! Copies a setup as the configuration of a training tool.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_plan::export::ExportFormat;
use vramscope_plan::{Choice, Plan};

use super::exports::{commented, names};
use crate::i18n::{t, t_string, use_i18n};
use crate::shell::{CopyButton, Store};

/// Menu of the tools that take the setup, and a button that copies its configuration; absent if none does.
#[component]
pub fn CopyExport(plan: Arc<Plan>, choice: Choice) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let takes = ExportFormat::ALL.into_iter();
    let takes: Vec<ExportFormat> = takes.filter(|form| form.write(&plan, &choice).is_ok()).collect();
    let first = takes.first().copied();
    first.map(|first| {
        let chosen = RwSignal::new(first.name());
        let options = takes
            .iter()
            .map(|form| view! { <option value=form.name()>{names(*form).0}</option> });
        let options: Vec<_> = options.collect();
        let text = move || {
            let name = chosen.get_untracked();
            let form = ExportFormat::ALL.into_iter().find(|form| form.name() == name);
            form.and_then(|form| Some(commented(store, form, form.write(&plan, &choice).ok()?)))
                .unwrap_or_default()
        };
        let choose = move |name: String| {
            let known = ExportFormat::ALL.into_iter().find(|form| form.name() == name);
            known.into_iter().for_each(|form| chosen.set(form.name()));
        };
        view! {
            <div class="make-fit-export">
                <CopyButton testid="make-fit-copy" label=|i18n| t_string!(i18n, make_fit.copy) text />
                <label class="tool-select">
                    <span class="offscreen">{t!(i18n, recommend.tool)}</span>
                    <select data-testid="make-fit-tool" on:change:target=move |event| choose(event.target().value())>
                        {options}
                    </select>
                </label>
            </div>
        }
    })
}
