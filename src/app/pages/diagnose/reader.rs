//! Controls the worker that reads files and answers questions about them.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_diagnose::words::Phrases;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::prelude::wasm_bindgen;

use super::answer_data::{Climbed, Diagnosis, Fix, Recording};

#[wasm_bindgen]
extern "C" {
    /// Starts a worker that reads files and a text, and passes its messages to `hear`; defined in `src/app/js/boot.js`.
    #[wasm_bindgen(js_namespace = vramscope, js_name = diagnose)]
    fn start(files: &js_sys::Array, text: &str, run: &str, hear: &js_sys::Function) -> web_sys::Worker;

    /// Says whether a worker should wait with its program loaded; defined there too.
    #[wasm_bindgen(js_namespace = vramscope, js_name = awaitDiagnosis)]
    fn stand_by(wanted: bool);
}

/// State of the reader.
#[derive(Debug, Clone, Default)]
pub enum State {
    /// No input yet.
    #[default]
    Nothing,
    /// Bytes read so far, and their total.
    Reading(f64, f64),
    /// Reading failed with this message.
    Fault(String),
    /// Reading is complete.
    Answered,
}

/// Handle through which components reach the reader.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Current state.
    pub state: RwSignal<State>,
    /// Phrases of findings in the user's language.
    pub phrases: RwSignal<Phrases>,
    /// Diagnosis; replaced when the run changes.
    pub answer: RwSignal<Option<Arc<Diagnosis>>>,
    /// Recordings, which do not depend on the run.
    pub recordings: RwSignal<Arc<Vec<Recording>>>,
    /// Changes tried for the run, and the number still to try.
    pub fixes: RwSignal<(Vec<Fix>, usize)>,
    /// The planner's ladder for the run, with its limit.
    pub ladder: RwSignal<Option<Arc<Climbed>>>,
    /// JSON of the named run, as the diagnoser expects it; empty if no run is named.
    pub run: RwSignal<String>,
    worker: StoredValue<Option<web_sys::Worker>, LocalStorage>,
    questions: StoredValue<Vec<Question>>,
    language: StoredValue<&'static str>,
}

/// A question that is asked repeatedly, for example as the pointer moves: while one is being answered, only the newest
/// of the following ones is kept.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    reader: Reader,
    id: usize,
    busy: StoredValue<bool>,
    waiting: StoredValue<Option<String>>,
    /// Latest answer.
    pub answer: RwSignal<Option<String>>,
}

impl Reader {
    /// Provides a reader to all components below; it stops when the page is left.
    pub fn provide() -> Self {
        let reader = Self {
            state: RwSignal::default(),
            phrases: RwSignal::default(),
            answer: RwSignal::default(),
            recordings: RwSignal::default(),
            fixes: RwSignal::default(),
            ladder: RwSignal::default(),
            run: RwSignal::default(),
            worker: StoredValue::new_local(None),
            questions: StoredValue::default(),
            language: StoredValue::new("en"),
        };
        stand_by(true);
        on_cleanup(move || {
            stand_by(false);
            reader.end();
        });
        provide_context(reader);
        reader
    }

    /// Returns the reader that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Text of a finding's phrase; reactive.
    pub fn phrase(self, key: &str) -> String {
        self.phrases.with(|phrases| phrases.get(key).to_owned())
    }

    /// Reads new input in place of the old.
    pub fn read(self, files: &js_sys::Array, text: &str) {
        self.end();
        self.state.set(State::Reading(0.0, 0.0));
        let hear = Closure::<dyn Fn(String, String, String)>::new(move |kind: String, text: String, id: String| {
            self.hear(&kind, text, &id);
        });
        let run = self.run.get_untracked();
        let worker = start(files, text, &run, hear.as_ref().unchecked_ref());
        // Leaked on purpose: the worker may call it as long as it lives.
        hear.forget();
        self.worker.set_value(Some(worker));
        self.send(&format!("{{\"language\":\"{}\"}}", self.language.get_value()));
    }

    fn hear(self, kind: &str, text: String, id: &str) {
        match kind {
            "progress" => {
                if let Ok((done, of, _)) = serde_json::from_str::<(f64, f64, String)>(&text) {
                    self.state.set(State::Reading(done, of));
                }
            }
            "answer" => match serde_json::from_str::<Diagnosis>(&text) {
                Ok(answer) => {
                    let is_first = !matches!(self.state.get_untracked(), State::Answered);
                    self.fixes.set((Vec::new(), 0));
                    self.ladder.set(None);
                    if is_first {
                        self.recordings.set(Arc::new(answer.recordings.clone()));
                    }
                    self.answer.set(Some(Arc::new(answer)));
                    if is_first {
                        self.state.set(State::Answered);
                    }
                }
                Err(error) => self.state.set(State::Fault(error.to_string())),
            },
            "phrases" if id == self.language.get_value() => {
                self.phrases.set(Phrases::read(&text).unwrap_or_default());
            }
            "fix" => {
                if let Ok((left, fix)) = serde_json::from_str::<(usize, Option<Fix>)>(&text) {
                    self.fixes.update(|(fixes, still)| {
                        fixes.extend(fix);
                        *still = left;
                    });
                }
            }
            "ladder" => self.ladder.set(serde_json::from_str(&text).ok().map(Arc::new)),
            "fault" => self.state.set(State::Fault(text)),
            _ => {
                let id: usize = id.parse().unwrap_or(usize::MAX);
                if let Some(question) = self.questions.with_value(|all| all.get(id).copied()) {
                    question.answered(text);
                }
            }
        }
    }

    /// Applies a new run to the diagnosis.
    pub fn know(self, run: String) {
        if self.run.get_untracked() == run {
            return;
        }
        let message = js_sys::Object::new();
        // Setting a property on a plain object cannot fail.
        js_sys::Reflect::set(&message, &"run".into(), &run.as_str().into()).ok();
        self.run.set(run);
        self.post(&message);
    }

    /// Switches the language of the diagnoser.
    pub fn speak(self, language: &'static str) {
        self.language.set_value(language);
        self.send(&format!("{{\"language\":\"{language}\"}}"));
    }

    /// Creates a question with an id of its own.
    pub fn question(self) -> Question {
        let id = self.questions.with_value(Vec::len);
        let question = Question {
            reader: self,
            id,
            busy: StoredValue::new(false),
            waiting: StoredValue::new(None),
            answer: RwSignal::new(None),
        };
        self.questions.update_value(|all| all.push(question));
        question
    }

    /// Stops reading.
    pub fn stop(self) {
        self.end();
        self.state.set(State::Nothing);
    }

    fn send(self, json: &str) {
        if let Ok(message) = js_sys::JSON::parse(json) {
            self.post(&message);
        }
    }

    fn post(self, message: &wasm_bindgen::JsValue) {
        self.worker.with_value(|worker| {
            // A message that cannot be sent gets no answer.
            worker.as_ref().and_then(|worker| worker.post_message(message).ok())
        });
    }

    fn end(self) {
        if let Some(worker) = self.worker.try_update_value(Option::take).flatten() {
            worker.terminate();
        }
        self.questions.try_update_value(Vec::clear);
        self.answer.try_set(None);
        self.recordings.try_set(Arc::default());
        self.fixes.try_set((Vec::new(), 0));
        self.ladder.try_set(None);
    }
}

impl Question {
    /// Asks a question of this kind with these arguments.
    pub fn ask(self, kind: &str, args: &[u32]) {
        let args: Vec<String> = args.iter().map(u32::to_string).collect();
        let json = format!("{{\"id\":{},\"{kind}\":[{}]}}", self.id, args.join(","));
        if self.busy.get_value() {
            self.waiting.set_value(Some(json));
        } else {
            self.busy.set_value(true);
            self.reader.send(&json);
        }
    }

    fn answered(self, text: String) {
        // The chart that asked may be gone.
        let next = self.waiting.try_update_value(Option::take).flatten();
        self.busy.try_set_value(next.is_some());
        if let Some(json) = next {
            self.reader.send(&json);
        }
        self.answer.try_set(Some(text));
    }
}
