//! `/recorded`: what a training step takes that PyTorch ran without a GPU, and a gallery of such recordings.

mod changes;
mod controls;
mod export;
mod facts;
mod gallery;
mod gallery_file;
mod page;
mod results;
mod sizes;
mod words;

use leptos::prelude::*;

use controls::Controls;
use page::RecordedState;
use results::Results;

/// The recording and what may change under it at the left, what it takes at the right, like any model.
#[component]
pub fn RecordedPage() -> impl IntoView {
    RecordedState::provide();
    view! {
        <div class="plan recorded">
            <Controls />
            <Results />
        </div>
    }
}
