//! Kernels of a recording whose time no rule tells.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::grouped;

use crate::i18n::{t, use_i18n};
use crate::worker::timing::Timing;

/// Table of the kernels that are timed only by the memory that they read and write; nothing if there are none.
#[component]
pub fn Untimed(timing: Arc<Timing>) -> impl IntoView {
    let i18n = use_i18n();
    let rows = timing.untimed.iter().map(|(name, launches)| {
        view! {
            <tr>
                <th scope="row">{name.clone()}</th>
                <td>{grouped(*launches)}</td>
            </tr>
        }
    });
    let rows = rows.collect_view();
    (!timing.untimed.is_empty()).then(|| {
        view! {
            <details class="time-kernels" data-testid="time-untimed">
                <summary>{t!(i18n, time.untimed)}</summary>
                <p class="muted small">{t!(i18n, time.untimed_explain)}</p>
                <table class="parts">
                    <thead>
                        <tr>
                            <th scope="col">{t!(i18n, time.kernel)}</th>
                            <th scope="col">{t!(i18n, time.launches)}</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </details>
        }
    })
}
