//! Files and texts that start a run, or tell of a crash, dropped or pasted anywhere on a page.

use gloo_file::File;
use gloo_file::futures::read_as_text;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{ClipboardEvent, DragEvent, Element, Event};

use super::files::all;
use crate::events::listen_first;
use crate::i18n::{t, use_i18n};
use crate::shell::{Diagnosed, Given, LaunchUse, OpenLaunch, Store};
use crate::state::{Route, is_crash, is_launch, is_launch_name};
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
        show(given, texts, use_as);
    });
}

fn show(given: Given, texts: Vec<LaunchText>, use_as: LaunchUse) {
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

/// Opens files if they start a run, by their names or else by what is in them; passes all others to `other`.
pub fn take_launches(
    given: Given,
    files: Vec<File>,
    use_as: LaunchUse,
    other: impl FnOnce(Vec<File>, String) + 'static,
) {
    let is_named = files.iter().any(|file| is_launch_name(&file.name()));
    if is_named {
        return read_launch(given, files, use_as);
    }
    let is_text = |file: &File| [".json", ".txt"].iter().any(|ending| file.name().ends_with(ending));
    let Some(first) = files.iter().find(|file| is_text(file)).cloned() else {
        return other(files, String::new());
    };
    spawn_local(async move {
        let text = read_as_text(&first).await.unwrap_or_default();
        match is_launch(&text) {
            true => read_launch(given, files, use_as),
            false => other(files, text),
        }
    });
}

/// Takes what is pasted outside text fields, and what is dropped where nothing else takes it, until the page is left:
/// texts that start a run, and texts of a crash, which open the diagnosis.
pub fn follow_launches(use_as: impl Fn() -> LaunchUse + 'static, dropped: Callback<Vec<File>>) {
    let (store, given) = (Store::get(), Given::get());
    let take = move |text: String| {
        if is_crash(&text) {
            diagnose(store, given, Vec::new(), text);
        } else if is_launch(&text) {
            let name = String::new();
            show(given, vec![LaunchText { name, text }], use_as());
        } else {
            return false;
        }
        true
    };
    follow_gifts(take, dropped);
}

/// Opens the diagnosis of files, or else of a text.
pub fn diagnose(store: Store, given: Given, files: Vec<File>, text: String) {
    given.log.set(text.clone());
    given.diagnosed.set(Some(Diagnosed { files, text }));
    store.route().set(Route::Diagnose);
}

/// Returns true for the name of a file that only the diagnosis reads: a log, or a snapshot of memory.
pub fn is_for_diagnosis(name: &str) -> bool {
    [".log", ".out", ".err", ".pickle"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// Gives texts that are pasted outside text fields to `take`, which returns true for those that it takes, and files that
/// are dropped where nothing else takes them to `dropped`, until the calling component is disposed of.
pub fn follow_gifts(take: impl Fn(String) -> bool + 'static, dropped: Callback<Vec<File>>) {
    listen_first(&window(), "paste", move |event| {
        if pasted(event).is_some_and(&take) {
            event.prevent_default();
        }
    });
    // Without it the browser leaves the page for the file.
    listen_first(&window(), "dragover", |event| {
        if brings_files(event) {
            event.prevent_default();
        }
    });
    listen_first(&window(), "drop", move |event| {
        if !brings_files(event) {
            return;
        }
        event.prevent_default();
        let data = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer);
        dropped.run(all(data.and_then(|data| data.files())));
    });
}

/// Returns true if files are dragged, and not a text.
fn brings_files(event: &Event) -> bool {
    let data = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer);
    data.is_some_and(|data| data.types().iter().any(|kind| kind == "Files"))
}

/// Text of a paste, unless it goes to a field for long texts.
fn pasted(event: &Event) -> Option<String> {
    let event = event.dyn_ref::<ClipboardEvent>()?;
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    if target.is_some_and(|target| target.tag_name() == "TEXTAREA") {
        return None;
    }
    event.clipboard_data()?.get_data("text/plain").ok()
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
