//! The worker that reads files.

use leptos::prelude::*;
use serde::Deserialize;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// `style/boot.js`: reads files in a worker, and a text with them; it is told how many are done, of how
    /// many, then the answer or a fault.
    #[wasm_bindgen(js_namespace = vramscope, js_name = diagnose)]
    fn start(files: &js_sys::Array, text: &str, hear: &js_sys::Function) -> web_sys::Worker;
}

/// What is read, and what came of it.
#[derive(Debug, Clone, Default)]
pub enum State {
    /// Nothing was given.
    #[default]
    Nothing,
    /// So many files are done, of so many.
    Reading(u32, u32),
    /// It could not be read.
    Fault(String),
    /// What it means.
    Answered(Answer),
}

/// What `diagnoser/session.rs` writes.
#[derive(Debug, Clone, Deserialize)]
pub struct Answer {
    /// Name, line and kind of each piece.
    pub read: Vec<(String, u32, String)>,
    /// Name, and why nothing of it was understood.
    pub refused: Vec<(String, String)>,
    /// The surest first.
    pub findings: Vec<Finding>,
    /// Curves of snapshots.
    pub recordings: Vec<Recording>,
}

/// One conclusion.
#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// Its stable name.
    pub code: String,
    /// How sure it is.
    pub standing: String,
    /// Of the course.
    pub row: String,
    /// In one sentence.
    pub title: Said,
    /// The numbers that show it.
    pub numbers: Vec<Said>,
    /// What to do.
    pub next: Vec<Said>,
    /// A part and its whole.
    pub gauge: Option<(f64, f64)>,
}

/// A phrase and what goes into its gaps.
#[derive(Debug, Clone, Deserialize)]
pub struct Said {
    /// Of `finding.json`.
    pub key: String,
    /// In the order of their names.
    pub gaps: Vec<Gap>,
}

/// What goes into a gap.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// The same in every language.
    Text(String),
    /// A phrase by its key.
    Phrase(String),
}

/// The curve of a snapshot.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    /// Number of the device.
    pub device: u32,
    /// How many events it has.
    pub events: u32,
    /// Highest live bytes.
    pub peak: f64,
    /// What is stacked.
    pub categories: Vec<String>,
    /// Bytes of each, over time.
    pub columns: Vec<Vec<f64>>,
}

/// The reader, as components reach it.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// What it is doing.
    pub state: RwSignal<State>,
    worker: StoredValue<Option<web_sys::Worker>, LocalStorage>,
}

impl Reader {
    /// Gives a reader to every component below; it stops when the page is left.
    pub fn provide() -> Self {
        let reader = Self {
            state: RwSignal::default(),
            worker: StoredValue::new_local(None),
        };
        on_cleanup(move || reader.end());
        provide_context(reader);
        reader
    }

    /// The reader that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Reads these instead of what was given before.
    pub fn read(self, files: &js_sys::Array, text: &str) {
        self.end();
        self.state.set(State::Reading(0, files.length().max(1)));
        let hear = Closure::<dyn Fn(u32, u32, String, String)>::new(move |done, of, answer: String, fault: String| {
            let state = match (answer.is_empty(), fault.is_empty()) {
                (_, false) => State::Fault(fault),
                (true, true) => State::Reading(done, of),
                (false, true) => match serde_json::from_str(&answer) {
                    Ok(answer) => State::Answered(answer),
                    Err(error) => State::Fault(error.to_string()),
                },
            };
            self.state.set(state);
        });
        let worker = start(files, text, hear.as_ref().unchecked_ref());
        // For as long as the worker may speak.
        hear.forget();
        self.worker.set_value(Some(worker));
    }

    /// Reads no further.
    pub fn stop(self) {
        self.end();
        self.state.set(State::Nothing);
    }

    fn end(self) {
        if let Some(worker) = self.worker.try_update_value(Option::take).flatten() {
            worker.terminate();
        }
    }
}
