//! What is typed, pasted or dropped anywhere goes to whatever reads it; what cannot be told apart is asked about.

use gloo_file::File;
use gloo_file::futures::read_as_text;
use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_intake::{Given as Something, Kind};
use wasm_bindgen::JsCast;
use web_sys::{ClipboardEvent, DragEvent, Element, Event};

use super::files::all;
use super::launch_files::{read_launch, show_launch};
use crate::events::listen_first;
use crate::shell::{Diagnosed, Given, LaunchUse, RawInput, Store};
use crate::state::{Key, Pins, Route, without_host};
use crate::worker::launched::LaunchText;

/// Bytes of a file that are looked at to tell what it is.
const HEAD: u64 = 1 << 16;

/// The one router of everything that a person gives the page.
#[derive(Debug, Clone, Copy)]
pub struct Intake {
    store: Store,
    given: Given,
}

impl Intake {
    /// Returns the page's router.
    pub fn get() -> Self {
        Self {
            store: Store::get(),
            given: Given::get(),
        }
    }

    /// Takes a text, and asks what it is if that cannot be told.
    pub fn take_text(self, text: String) {
        self.give(Kind::of_text(&text), RawInput::Text(text));
    }

    /// Takes files. Those that belong together go together, to what reads the first of them that is known.
    pub fn take_files(self, files: Vec<File>) {
        spawn_local(async move {
            let mut kinds = Vec::new();
            for file in &files {
                kinds.push(kind_of_file(file).await);
            }
            let known = [Kind::Dataset, Kind::Crash, Kind::Launch, Kind::Recording, Kind::Config];
            let found = known.into_iter().find(|kind| kinds.contains(kind));
            if !files.is_empty() {
                self.give(found.unwrap_or(Kind::Unknown), RawInput::Files(files));
            }
        });
    }

    /// Gives something to what reads it.
    pub fn give(self, kind: Kind, input: RawInput) {
        let Self { store, given } = self;
        let route = store.route().get_untracked();
        // A log is often no more than a command and a few lines: where crashes are read, all that may be one is.
        let kind = match kind {
            Kind::Launch | Kind::Unknown if route == Route::Diagnose => Kind::Crash,
            kind => kind,
        };
        match (kind, input) {
            (Kind::Model(name), _) => self.use_model(without_host(&name).to_owned()),
            (Kind::Link(fragment), _) => drop(window().location().set_hash(&fragment)),
            (Kind::Config, RawInput::Text(text)) => self.use_config(text),
            (Kind::Config, RawInput::Files(files)) => {
                let Some(file) = files.into_iter().next() else { return };
                // A file that can't be read is one that says nothing, which the reader reports.
                spawn_local(async move { self.use_config(read_as_text(&file).await.unwrap_or_default()) });
            }
            (Kind::Launch, RawInput::Text(text)) => {
                let name = String::new();
                show_launch(given, vec![LaunchText { name, text }], self.launch_use());
            }
            (Kind::Launch, RawInput::Files(files)) => read_launch(given, files, self.launch_use()),
            (Kind::Crash, RawInput::Text(text)) => self.diagnose(Vec::new(), text),
            (Kind::Crash, RawInput::Files(files)) => self.diagnose(files, String::new()),
            (Kind::Recording, RawInput::Text(text)) => self.play(File::new("recording.vram", text.as_str())),
            (Kind::Recording, RawInput::Files(files)) => files.into_iter().take(1).for_each(|file| self.play(file)),
            (Kind::Dataset, RawInput::Files(files)) => {
                given.dataset.set(files.into_iter().next());
                store.route().set(Route::Plan);
            }
            (_, input) => given.unknown.set(Some(input)),
        }
    }

    /// Makes a model that of the page, by its name or id.
    fn use_model(self, name: String) {
        self.given.by_config.set(false);
        self.store.edit(|draft| {
            draft.set(Key::Model, name);
            draft.set(Key::Config, "");
            draft.stand_in(None);
        });
        self.show_setup();
    }

    fn use_config(self, text: String) {
        self.store.edit(|draft| draft.set_config(text));
        self.show_setup();
    }

    /// Leads to a page on which the setup is seen.
    fn show_setup(self) {
        let route = self.store.route();
        let is_seen = [Route::Plan, Route::Recommend, Route::Attention, Route::Compare];
        if !is_seen.contains(&route.get_untracked()) {
            route.set(Route::Plan);
        }
    }

    fn play(self, file: File) {
        self.given.file.set(Some(file));
        self.store.edit(|draft| {
            draft.set(Key::Recording, "");
            draft.set(Key::Sizes, "");
        });
        self.store.route().set(Route::Recorded);
    }

    /// Opens the diagnosis of files, or else of a text.
    pub fn diagnose(self, files: Vec<File>, text: String) {
        self.given.log.set(text.clone());
        self.given.diagnosed.set(Some(Diagnosed { files, text }));
        self.store.route().set(Route::Diagnose);
    }

    /// What files that start a run are for: on the page that compares, the side that is still open.
    fn launch_use(self) -> LaunchUse {
        if self.store.route().get_untracked() != Route::Compare {
            return LaunchUse::Plan;
        }
        let reading = self.store.reading();
        let pins = reading.with_untracked(|reading| Pins::read(reading.good.get(Key::Compare)).unwrap_or_default());
        match pins.all().is_empty() {
            true => LaunchUse::A,
            false => LaunchUse::B,
        }
    }

    /// Takes what is pasted outside fields, or is no text for a field, and what is dropped where nothing else takes it.
    pub fn follow(self) {
        listen_first(&window(), "paste", move |event| {
            let Some((text, is_in_field)) = pasted(event) else {
                return;
            };
            let kind = Kind::of_text(&text);
            let is_for_field = is_in_field && matches!(kind, Kind::Model(_) | Kind::Link(_) | Kind::Unknown);
            if !is_for_field && !text.trim().is_empty() {
                event.prevent_default();
                self.give(kind, RawInput::Text(text));
            }
        });
        listen_first(&window(), "dragover", |event| {
            if brings_files(event) {
                // Without it the browser leaves the page for the file.
                event.prevent_default();
                mark_drop(true);
            }
        });
        listen_first(&window(), "dragleave", |event| {
            let is_out = event
                .dyn_ref::<DragEvent>()
                .is_some_and(|event| event.related_target().is_none());
            if is_out {
                mark_drop(false);
            }
        });
        listen_first(&window(), "drop", move |event| {
            mark_drop(false);
            if !brings_files(event) {
                return;
            }
            event.prevent_default();
            let data = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer);
            self.take_files(all(data.and_then(|data| data.files())));
        });
    }
}

/// Tells what a file is, by its name or else by its beginning.
async fn kind_of_file(file: &File) -> Kind {
    let name = file.name();
    let something = Something {
        name: &name,
        bytes: file.size(),
        text: "",
    };
    if let Some(kind) = Kind::of_name(something) {
        return kind;
    }
    let head = file.slice(0, file.size().min(HEAD));
    let text = read_as_text(&head).await.unwrap_or_default();
    Kind::of(Something {
        text: &text,
        ..something
    })
}

/// Shows around the window that files may be dropped.
fn mark_drop(is_over: bool) {
    if let Some(root) = document().document_element() {
        // Setting an attribute on the root element cannot fail.
        root.toggle_attribute_with_force("data-drop", is_over).ok();
    }
}

/// Returns true if files are dragged, and not a text.
fn brings_files(event: &Event) -> bool {
    let data = event.dyn_ref::<DragEvent>().and_then(DragEvent::data_transfer);
    data.is_some_and(|data| data.types().iter().any(|kind| kind == "Files"))
}

/// Text of a paste, and true if it goes to a field of one line; `None` for one that goes to a field for long texts.
fn pasted(event: &Event) -> Option<(String, bool)> {
    let event = event.dyn_ref::<ClipboardEvent>()?;
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let tag = target.map(|target| target.tag_name()).unwrap_or_default();
    if tag == "TEXTAREA" {
        return None;
    }
    let text = event.clipboard_data()?.get_data("text/plain").ok()?;
    Some((text, tag == "INPUT"))
}
