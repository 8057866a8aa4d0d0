//! Compares the current setup with pinned ones: verdict, memory, peaks, parts and differing entries.

mod columns;
mod head;
mod rows;

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::shell::Store;
use crate::state::{Key, Route};
use crate::widgets::error_of;
pub use columns::Column;
use columns::Columns;
use head::Head;
pub use rows::{Differences, Figures, Parts, Verdicts};

/// Shows pinned setups beside the current one, if any are pinned.
#[component]
pub fn Compare() -> impl IntoView {
    let i18n = use_i18n();
    let columns = Columns::follow();
    let error = error_of(Key::Compare);
    let store = Store::get();
    let by_tensor = move || Route::Compare.fragment(&store.address().draft.to_query());
    let shown = move || columns.all.with(|all| all.len() > 1);
    view! {
        <section class="card compare" data-testid="compare">
            <h2>{t!(i18n, compare.title)}</h2>
            <p class="field-error" data-testid="error-compare">{move || error.get()}</p>
            <Show when=shown>
                <p class="muted small">{t!(i18n, compare.to_first)}</p>
                <div class="compare-scroll" tabindex="0" role="region" aria-label=move || t_string!(i18n, compare.title)>
                    {move || {
                        let all = columns.all.get();
                        let count = all.len().to_string();
                        view! {
                            <table class="compare-table" style:--columns=count>
                                <Head all=all.clone() />
                                <tbody>
                                    <Verdicts all=all.clone() />
                                    <Parts all=all.clone() />
                                    <Figures all=all.clone() />
                                    <Differences all />
                                </tbody>
                            </table>
                        }
                        .into_any()
                    }}
                </div>
                <p>
                    <a href=by_tensor data-testid="by-tensor">{t!(i18n, compare.by_tensor)}</a>
                </p>
            </Show>
        </section>
    }
}
