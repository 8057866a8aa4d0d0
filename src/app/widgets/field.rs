//! Label, help and error message around a control.

use leptos::prelude::*;

use super::help::{Help, HelpButton};
use super::prefetch::{Texts, none, tells};
use crate::i18n::use_i18n;
use crate::part::{text, truth};
use crate::shell::Store;
use crate::simulation::{Outcome, Simulation};
use crate::state::Key;
use crate::words;
use crate::worker::Refusal;

/// Element id of a key's control.
pub fn control_id(key: Key) -> String {
    format!("control-{}", key.name())
}

/// Element id of a key's error message.
pub fn error_id(key: Key) -> String {
    format!("error-{}", key.name())
}

/// Element ids of a control's error message and help, for `aria-describedby`.
pub fn described_by(key: Key) -> String {
    format!("error-{0} help-{0}", key.name())
}

/// Error message of a key's entry, if it is invalid or the engine refused it as out of range.
pub fn error_of(key: Key) -> Signal<Option<String>> {
    let i18n = use_i18n();
    let reading = Store::get().reading();
    let simulation = use_context::<Simulation>();
    Memo::new(move |_| {
        let error = reading.with(|r| r.error(key).map(|e| words::field_error(i18n, e)));
        error.or_else(|| {
            let refused = |outcome: &Outcome| match outcome {
                Outcome::Refused(Refusal::Setup(why)) if why.entry_out_of_range() == Some(key.name()) => {
                    Some(words::setup_refusal(i18n, why))
                }
                _ => None,
            };
            // The signal of a page that is being left is disposed already; reading it would panic.
            simulation?.outcome.try_with(refused)?
        })
    })
    .into()
}

/// A control with its label, help and error message.
#[component]
pub fn Field(
    key: Key,
    /// Texts that one click would change it to.
    #[prop(default = none())]
    texts: Texts,
    children: Children,
) -> impl IntoView {
    let i18n = use_i18n();
    let error = error_of(key);
    let open = RwSignal::new(false);
    view! {
        <div class="field" class:field-wrong=truth(move || error.get().is_some()) {..tells(key, texts)}>
            <div class="field-head">
                <label class="field-label" for=control_id(key)>
                    {text(move || words::label(i18n, key))}
                </label>
                <HelpButton key open />
            </div>
            <Help key open />
            <div class="field-control">{children()}</div>
            <ErrorText key error />
        </div>
    }
}

/// Error message beside a control.
#[component]
pub fn ErrorText(
    /// Key of the entry.
    key: Key,
    /// The message, if the entry is invalid.
    error: Signal<Option<String>>,
) -> impl IntoView {
    view! {
        <p class="field-error" id=error_id(key) role="alert" data-testid=error_id(key)>
            {text(move || error.get().unwrap_or_default())}
        </p>
    }
}
