use leptos::prelude::*;

use super::help::{Help, HelpButton};
use super::near::{Texts, none, tells};
use crate::i18n::use_i18n;
use crate::part::{text, truth};
use crate::shell::Store;
use crate::state::Key;
use crate::words;

/// The id of a key's control.
pub fn control_id(key: Key) -> String {
    format!("control-{}", key.name())
}

/// The id of the message beside it.
pub fn error_id(key: Key) -> String {
    format!("error-{}", key.name())
}

/// The ids of what is said of a control: its message and its help.
pub fn described_by(key: Key) -> String {
    format!("error-{0} help-{0}", key.name())
}

/// The message about a key's entry, while something is wrong with it.
pub fn error_of(key: Key) -> Signal<Option<String>> {
    let i18n = use_i18n();
    let reading = Store::get().reading();
    Memo::new(move |_| reading.with(|r| r.error(key).map(|e| words::field_error(i18n, e)))).into()
}

/// A label with its help, a control, and room for a message.
#[component]
pub fn Field(
    key: Key,
    /// What one press changes it to.
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

/// The message beside a control.
#[component]
pub fn ErrorText(key: Key, error: Signal<Option<String>>) -> impl IntoView {
    view! {
        <p class="field-error" id=error_id(key) role="alert" data-testid=error_id(key)>
            {text(move || error.get().unwrap_or_default())}
        </p>
    }
}
