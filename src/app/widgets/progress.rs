//! Progress of long work, with a stop button.

use leptos::prelude::*;

use crate::i18n::{t, t_string, use_i18n};
use crate::part::text;
use crate::worker::Progress;

/// Shows the progress of long work with a stop button; becomes visible only if the work takes long.
#[component]
pub fn ProgressLine(
    /// Progress; `None` if nothing is running.
    #[prop(into)]
    progress: Signal<Option<Progress>>,
    /// Stops the work.
    stop: impl Fn() + Copy + Send + Sync + 'static,
) -> impl IntoView {
    let i18n = use_i18n();
    let at_work = Memo::new(move |_| progress.get().is_some());
    let now = move || progress.get().unwrap_or_default();
    let words = move || {
        let Progress { done, of } = now();
        t_string!(i18n, progress.done, done = done.to_string(), of = of.to_string()).to_string()
    };
    view! {
        <Show when=move || at_work.get()>
            <div class="progress" data-testid="progress">
                <progress max=text(move || now().of.to_string()) value=text(move || now().done.to_string()) aria-label=words></progress>
                <span class="muted small">{words}</span>
                <button type="button" class="tool" on:click=move |_| stop() data-testid="stop">
                    {t!(i18n, progress.stop)}
                </button>
            </div>
        </Show>
    }
}
