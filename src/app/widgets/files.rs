use leptos::attr::Attribute;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DragEvent, File, FileList, HtmlInputElement};

/// What an element needs to take files that are dropped onto it; it is marked while some are held above it.
pub fn dropped(take: Callback<Vec<File>>) -> impl Attribute {
    let over = RwSignal::new(false);
    let hover = move |event: DragEvent| {
        event.prevent_default();
        over.set(true);
    };
    let drop = move |event: DragEvent| {
        event.prevent_default();
        over.set(false);
        take.run(all(event.data_transfer().and_then(|data| data.files())));
    };
    view! { <{..} class:file-over=over on:dragover=hover on:dragleave=move |_| over.set(false) on:drop=drop /> }
}

/// A button that lets the person choose files.
#[component]
pub fn OpenFiles(
    label: AnyView,
    testid: &'static str,
    /// Kinds of files that are offered first; all where empty.
    #[prop(optional)]
    accept: &'static str,
    #[prop(optional)] multiple: bool,
    take: Callback<Vec<File>>,
) -> impl IntoView {
    let open = move |input: HtmlInputElement| {
        take.run(all(input.files()));
        // So that the same file can be opened again.
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

/// Reads a file as text. One that cannot be read comes out empty, and whoever takes it says so.
pub fn read_text(file: &File, then: impl FnOnce(String) + 'static) {
    let text = JsFuture::from(file.text());
    spawn_local(async move { then(text.await.ok().and_then(|text| text.as_string()).unwrap_or_default()) });
}

fn all(files: Option<FileList>) -> Vec<File> {
    let files = files.iter();
    files
        .flat_map(|files| (0..files.length()).filter_map(|i| files.get(i)))
        .collect()
}
