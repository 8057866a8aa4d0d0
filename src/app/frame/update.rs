//! Notice about a newer version of the page.

use leptos::prelude::*;

use super::host;
use crate::i18n::{t, use_i18n};

/// Announces that a newer version is ready, and loads it on request.
#[component]
pub fn UpdateNotice() -> impl IntoView {
    let i18n = use_i18n();
    let waits = host::offered("update");
    view! {
        <Show when=move || waits.get()>
            <section class="notice notice-update" role="status" data-testid="update">
                <p>{t!(i18n, offline.update)}</p>
                <button type="button" class="tool" on:click=|_| host::ask("update") data-testid="update-now">
                    {t!(i18n, offline.reload)}
                </button>
            </section>
        </Show>
    }
}
