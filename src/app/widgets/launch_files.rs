//! Files and texts that start a run, opened over the page.

use gloo_file::File;
use gloo_file::futures::read_as_text;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::i18n::{t, use_i18n};
use crate::shell::{Given, LaunchUse, OpenLaunch};
use crate::worker::launched::LaunchText;

/// Opens files that start a run; they join those that are on screen.
pub fn read_launch(given: Given, files: Vec<File>, use_as: LaunchUse) {
    spawn_local(async move {
        let mut texts = Vec::new();
        for file in files {
            // A file that can't be read is one that says nothing, which the reader reports.
            let text = read_as_text(&file).await.unwrap_or_default();
            texts.push(LaunchText {
                name: file.name(),
                text,
            });
        }
        show_launch(given, texts, use_as);
    });
}

/// Opens texts that start a run; they join those that are on screen.
pub fn show_launch(given: Given, texts: Vec<LaunchText>, use_as: LaunchUse) {
    given.launch.try_update(|launch| {
        let open = launch.get_or_insert_with(|| OpenLaunch {
            texts: Vec::new(),
            use_as,
        });
        for text in texts {
            // The same file again is a newer version of it.
            open.texts
                .retain(|known| text.name.is_empty() || known.name != text.name);
            open.texts.push(text);
        }
    });
}

/// Button that asks for files that start a run.
#[component]
pub fn LaunchButton() -> impl IntoView {
    let i18n = use_i18n();
    let given = Given::get();
    view! {
        <button
            type="button"
            class="tool launch-button"
            aria-haspopup="dialog"
            data-testid="open-launch"
            on:click=move |_| given.launch.set(Some(OpenLaunch::default()))
        >
            {t!(i18n, model.launch)}
        </button>
    }
}
