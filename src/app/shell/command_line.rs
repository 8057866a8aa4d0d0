//! A command for a terminal, with a button that copies it.

use leptos::prelude::*;

use super::CopyButton;
use crate::i18n::{t, t_string, use_i18n};

/// Shows a command for a terminal, and copies it.
#[component]
pub fn CommandLine(
    /// The command.
    #[prop(into)]
    text: String,
    /// Id of the button by which tests and scripts find it.
    testid: &'static str,
) -> impl IntoView {
    let i18n = use_i18n();
    let copied = text.clone();
    view! {
        <div class="command-line">
            <pre class="command" tabindex="0" aria-label=t!(i18n, export.command)>
                <code>{text}</code>
            </pre>
            <CopyButton text=move || copied.clone() label=|i18n| t_string!(i18n, export.copy) testid />
        </div>
    }
}
