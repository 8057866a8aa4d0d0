//! The question what something is that was pasted or dropped and cannot be told apart.

use leptos::html;
use leptos::prelude::*;
use vramscope_intake::Kind;

use crate::i18n::{Words, t, t_string, use_i18n};
use crate::shell::{Given, RawInput};
use crate::widgets::Intake;

/// Most characters of a text that are shown of it.
const SHOWN: usize = 160;

/// Asks what was given, while it is not known.
#[component]
pub fn UnknownPlace() -> impl IntoView {
    let given = Given::get();
    let is_asked = Memo::new(move |_| given.unknown.with(Option::is_some));
    view! {
        <Show when=move || is_asked.get()>
            <Question />
        </Show>
    }
}

/// Dialog with what it may be; the browser closes it on Escape and restores the focus.
#[component]
fn Question() -> impl IntoView {
    let i18n = use_i18n();
    let (given, intake) = (Given::get(), Intake::get());
    let dialog = NodeRef::<html::Dialog>::new();
    Effect::new(move || {
        if let Some(dialog) = dialog.get() {
            // Fails only if it is open already.
            dialog.show_modal().ok();
        }
    });
    let input = given.unknown.get_untracked();
    let (shown, text) = match &input {
        Some(RawInput::Text(text)) => (text.trim().chars().take(SHOWN).collect(), Some(text.trim().to_owned())),
        Some(RawInput::Files(files)) => (
            files.iter().map(|file| file.name()).collect::<Vec<_>>().join(", "),
            None,
        ),
        None => (String::new(), None),
    };
    let close = move || given.unknown.set(None);
    let is_word = text.as_ref().is_some_and(|text| !text.contains('\n'));
    let choices = CHOICES.into_iter().filter(|choice| match choice.name {
        // A file has no id, and a text of one line is no recording.
        "model" => is_word,
        "recording" => text.is_none(),
        _ => true,
    });
    let buttons = choices.map(|choice| {
        let text = text.clone();
        let pick = move |_| {
            let input = given.unknown.try_update(Option::take).flatten();
            let kind = (choice.kind)(text.clone().unwrap_or_default());
            input.into_iter().for_each(|input| intake.give(kind.clone(), input));
        };
        view! {
            <button type="button" class="tool" data-testid=format!("unknown-{}", choice.name) on:click=pick>
                {move || (choice.words)(i18n)}
            </button>
        }
    });
    let buttons: Vec<_> = buttons.collect();
    view! {
        <dialog class="launch unknown" node_ref=dialog aria-labelledby="unknown-title" data-testid="unknown" on:close=move |_| close()>
            <div class="launch-title">
                <h2 id="unknown-title">{t!(i18n, intake.unknown)}</h2>
                <button type="button" class="tool" data-testid="unknown-cancel" on:click=move |_| close()>
                    {t!(i18n, intake.cancel)}
                </button>
            </div>
            <div class="launch-body">
                <p>{t!(i18n, intake.unknown_explain)}</p>
                <pre class="command unknown-given">{shown}</pre>
                <div class="launch-tools">{buttons}</div>
            </div>
        </dialog>
    }
}

/// Something that it may be.
#[derive(Clone, Copy)]
struct Choice {
    /// Name in the document, for tests.
    name: &'static str,
    words: fn(Words) -> &'static str,
    kind: fn(String) -> Kind,
}

const CHOICES: [Choice; 5] = [
    Choice {
        name: "model",
        words: |i18n| t_string!(i18n, intake.is_model),
        kind: Kind::Model,
    },
    Choice {
        name: "config",
        words: |i18n| t_string!(i18n, intake.is_config),
        kind: |_| Kind::Config,
    },
    Choice {
        name: "launch",
        words: |i18n| t_string!(i18n, intake.is_launch),
        kind: |_| Kind::Launch,
    },
    Choice {
        name: "crash",
        words: |i18n| t_string!(i18n, intake.is_crash),
        kind: |_| Kind::Crash,
    },
    Choice {
        name: "recording",
        words: |i18n| t_string!(i18n, intake.is_recording),
        kind: |_| Kind::Recording,
    },
];
