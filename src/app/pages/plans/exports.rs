//! Exports the recommended setup to training frameworks.

use leptos::prelude::*;
use vramscope_plan::Plan;
use vramscope_plan::export::ExportFormat;

use super::page::PlansState;
use crate::charts::save_text;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{CopyButton, Store};

/// Name of the tool, which is not translated, and of its file.
pub(super) const fn names(form: ExportFormat) -> (&'static str, &'static str) {
    match form {
        ExportFormat::HfPython => ("transformers.TrainingArguments (Python)", "training_args.py"),
        ExportFormat::HfYaml => ("transformers.TrainingArguments (YAML)", "training_args.yaml"),
        ExportFormat::Accelerate => ("accelerate", "accelerate.yaml"),
        ExportFormat::Deepspeed => ("DeepSpeed", "deepspeed.json"),
        ExportFormat::Fsdp => ("FSDP2 (accelerate)", "fsdp.yaml"),
        ExportFormat::Lightning => ("PyTorch Lightning", "lightning.yaml"),
        ExportFormat::Trl => ("TRL SFTConfig", "sft.yaml"),
        ExportFormat::LlamaFactory => ("LLaMA-Factory", "llama_factory.yaml"),
        ExportFormat::MsSwift => ("ms-swift", "ms_swift.yaml"),
    }
}

/// A configuration with comments that name what the setup leaves out of the run that was given. JSON has no comments.
pub(super) fn commented(store: Store, form: ExportFormat, text: String) -> String {
    match form {
        ExportFormat::Deepspeed => text,
        _ => store.reading().with(|reading| reading.good.left_out_comment()) + &text,
    }
}

/// Shows the recommended setup as a configuration of a tool.
#[component]
pub fn Exports() -> impl IntoView {
    let i18n = use_i18n();
    let (page, store) = (PlansState::get(), Store::get());
    let form = RwSignal::new(None::<String>);
    // Until the user selects a tool, show the first one that supports the setup.
    let taking = Memo::new(move |_| {
        let first = |plan: &Plan| {
            let best = plan.recommended.as_ref()?;
            ExportFormat::ALL
                .into_iter()
                .find(|form| form.write(plan, best).is_ok())
        };
        page.plan(first).flatten().unwrap_or(ExportFormat::HfPython)
    });
    let chosen = move || match form.get() {
        Some(name) => ExportFormat::ALL.into_iter().find(|known| known.name() == name),
        None => Some(taking.get()),
    };
    let name = move || chosen().map(ExportFormat::name);
    let written = Memo::new(move |_| {
        let form = chosen()?;
        let write = |plan: &Plan| {
            let written = form.write(plan, plan.recommended.as_ref()?);
            Some(written.map(|text| commented(store, form, text)))
        };
        page.plan(write)?
    });
    let text = move || written.get_untracked().and_then(Result::ok).unwrap_or_default();
    let save = move |_| {
        if let Some(form) = untrack(chosen) {
            save_text(&text(), "text/plain", names(form).1);
        }
    };
    let has_any = Memo::new(move |_| written.with(Option::is_some));
    let shown = part(move || written.get().map(|written| configuration(i18n, written)));
    view! {
        <Show when=move || has_any.get()>
            <section class="card export">
                <h2>{t!(i18n, recommend.exports)}</h2>
                <p class="muted small">{t!(i18n, recommend.exports_explain)}</p>
                <label class="field plans-form">
                    <span class="field-label">{t!(i18n, recommend.tool)}</span>
                    <select
                        data-testid="plan-form"
                        prop:value=name
                        on:change:target=move |event| form.set(Some(event.target().value()))
                    >
                        {ExportFormat::ALL.map(option)}
                    </select>
                </label>
                {shown.clone()}
                <div class="export-tools">
                    <CopyButton text=text label=|i18n| t_string!(i18n, export.copy) testid="plan-copy" />
                    <button type="button" class="tool" data-testid="plan-save" on:click=save>
                        {t!(i18n, recommend.save)}
                    </button>
                </div>
            </section>
        </Show>
    }
}

/// The text of a configuration, or why the tool does not take the setup.
fn configuration(i18n: Words, written: Result<String, String>) -> AnyView {
    match written {
        Ok(text) => view! {
            <pre
                class="command plans-export"
                tabindex="0"
                aria-label=move || t_string!(i18n, recommend.exports)
                data-testid="plan-export"
            >
                <code>{text}</code>
            </pre>
        }
        .into_any(),
        Err(why) => view! { <p class="refusal-message" data-testid="plan-export-refused">{why}</p> }.into_any(),
    }
}

/// A tool to choose.
fn option(known: ExportFormat) -> impl IntoView {
    view! { <option value=known.name()>{names(known).0}</option> }
}
