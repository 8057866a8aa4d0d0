//! Opens files by button or drag and drop.

use gloo_file::futures::read_as_text;
use gloo_file::{File, FileList};
use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::{DragEvent, HtmlInputElement};

/// Makes an element accept dropped files; it is highlighted while files are dragged over it.
pub fn dropped(take: Callback<Vec<File>>) -> impl Attribute {
    let over = RwSignal::new(false);
    let hover = move |event: DragEvent| {
        event.prevent_default();
        over.set(true);
    };
    let drop = move |event: DragEvent| {
        event.prevent_default();
        // The whole page is a drop target too: it must not handle the same files a second time.
        event.stop_propagation();
        over.set(false);
        take.run(all(event.data_transfer().and_then(|data| data.files())));
    };
    view! { <{..} class:file-over=over on:dragover=hover on:dragleave=move |_| over.set(false) on:drop=drop /> }
}

/// Button that opens a file picker.
#[component]
pub fn OpenFiles(
    label: AnyView,
    testid: &'static str,
    /// File types offered by default; all if empty.
    #[prop(optional)]
    accept: &'static str,
    #[prop(optional)] multiple: bool,
    take: Callback<Vec<File>>,
) -> impl IntoView {
    let open = move |input: HtmlInputElement| {
        take.run(all(input.files()));
        // Cleared so that the same file can be opened again.
        input.set_value("");
    };
    view! {
        <label class="tool open-file">
            {label}
            <input
                class="offscreen"
                type="file"
                multiple=multiple
                accept=accept
                data-testid=testid
                on:change:target=move |ev| open(ev.target())
            />
        </label>
    }
}

/// Reads a file as text; an unreadable file yields an empty text, which the receiver reports.
pub fn read_text(file: &File, then: impl FnOnce(String) + 'static) {
    let text = read_as_text(file);
    spawn_local(async move { then(text.await.unwrap_or_default()) });
}

/// Files of a list that a browser gives.
pub(super) fn all(files: Option<web_sys::FileList>) -> Vec<File> {
    files.map(|files| FileList::from(files).to_vec()).unwrap_or_default()
}
