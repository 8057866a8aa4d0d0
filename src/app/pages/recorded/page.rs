//! The recording that is shown: fetched or opened, handed to the worker, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use gloo_file::File;
use gloo_file::futures::read_as_bytes;
use gloo_net::http::Request;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::gallery_file::{Entry, Gallery};
use crate::events::Pending;
use crate::fetched::published;
use crate::shell::{Given, Store};
use crate::simulation::{Outcome, Simulation};
use crate::state::{Draft, Key, Reading};
use crate::widgets::is_typing;
use crate::worker::recorded::{Facts, Fault, MOST_PACKED, Packed, RecordedAnswer};
use crate::worker::view::RunView;
use crate::worker::{Answer, Ask, Engine, Refusal, Slot};

/// Delay after which a replay that is still running marks the shown figures as outdated.
const PATIENCE: Duration = Duration::from_millis(100);

/// Delay before the last figures disappear when the user types sizes that were not recorded: the first digits of a
/// number rarely were.
const REST: Duration = Duration::from_millis(600);

/// State of the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum State {
    /// The gallery: no recording was chosen.
    #[default]
    Nothing,
    /// A recording is on its way.
    Coming,
    /// It cannot be shown.
    Fault(Fault),
    /// It is shown.
    Ready,
}

/// The page's state, as components reach it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedState {
    /// Gallery, progress, fault or run on screen.
    pub state: RwSignal<State>,
    /// Facts that the recording fixes. They stay until the next recording has loaded, so that the list does not flicker.
    pub facts: RwSignal<Option<Arc<Facts>>>,
    /// Number of the recording that `facts` describe, in questions about it.
    pub number: RwSignal<Option<u32>>,
    /// Title or file name of the recording.
    pub name: RwSignal<String>,
    /// The gallery, once it is there; empty where it cannot be had.
    pub gallery: RwSignal<Option<Arc<Gallery>>>,
    file: RwSignal<Option<Packed>, LocalStorage>,
    /// The number of the last file that was asked for.
    asked: StoredValue<u32>,
    /// The number of the file whose answer was seen.
    seen: StoredValue<u32>,
    /// Timer that marks the shown figures as outdated.
    patience: Pending,
    /// Timer that removes the figures of the last sizes.
    resting: Pending,
}

impl RecordedState {
    /// Follows what is chosen, and gives it to every component below.
    pub fn provide() {
        let (store, given) = (Store::get(), Given::get());
        let simulation = Simulation::provide_recorded();
        let page = Self {
            state: RwSignal::default(),
            facts: RwSignal::new(None),
            number: RwSignal::new(None),
            name: RwSignal::default(),
            gallery: RwSignal::new(None),
            file: RwSignal::new_local(None),
            asked: StoredValue::new(0),
            seen: StoredValue::new(0),
            patience: Pending::new(),
            resting: Pending::new(),
        };
        provide_context(page);
        spawn_local(async move {
            let text = published("gallery").await.unwrap_or_default();
            let read = serde_json::from_str(&text).unwrap_or_default();
            // The page may have been left.
            page.gallery.try_set(Some(Arc::new(read)));
        });
        let named = Memo::new(move |_| store.text(Key::Recording));
        Effect::new(move || {
            let (name, file) = (named.get(), given.file.get());
            match (name.as_str(), file) {
                ("", Some(file)) => page.open(file),
                ("", None) => page.close(),
                (name, _) => page.look_up(name),
            }
        });
        let engine = Engine::get();
        let reading = store.reading();
        let entries = Memo::new(move |_| reading.with(Reading::of_recorded));
        Effect::new(move || {
            let entries = entries.get();
            if let Some(file) = page.file.get() {
                page.ask((engine, store), simulation, file, entries);
            }
        });
        on_cleanup(move || engine.cancel(Slot::Run));
    }

    /// The desk that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The gallery's entry that is shown.
    pub fn item(self) -> Option<Entry> {
        let name = Store::get().text(Key::Recording);
        let gallery = self.gallery.get()?;
        gallery.models.iter().find(|item| item.id == name).cloned()
    }

    /// Begins with another file; its number.
    fn begin(self, name: String) -> u32 {
        self.asked.update_value(|number| *number += 1);
        self.name.set(name);
        self.state.set(State::Coming);
        self.asked.get_value()
    }

    fn close(self) {
        self.begin(String::new());
        self.file.set(None);
        self.forget();
        self.state.set(State::Nothing);
    }

    /// Forgets the facts of the last recording.
    fn forget(self) {
        self.facts.set(None);
        self.number.set(None);
    }

    fn fail(self, number: u32, fault: Fault) {
        if self.asked.try_get_value() == Some(number) {
            self.file.set(None);
            self.forget();
            self.state.set(State::Fault(fault));
        }
    }

    fn have(self, number: u32, bytes: Vec<u8>) {
        if self.asked.try_get_value() == Some(number) {
            let bytes = Arc::new(bytes);
            self.file.set(Some(Packed { number, bytes }));
        }
    }

    fn open(self, file: File) {
        let number = self.begin(file.name());
        if file.size() as f64 > MOST_PACKED {
            return self.fail(number, Fault::TooLarge(MOST_PACKED as u64 >> 20));
        }
        spawn_local(async move {
            match read_as_bytes(&file).await {
                Ok(bytes) => self.have(number, bytes),
                Err(_) => self.fail(number, Fault::Unreachable(file.name())),
            }
        });
    }

    /// Fetches a recording of the gallery, or a file beside the page.
    fn look_up(self, name: &str) {
        let beside = name.ends_with(".gz").then(|| name.to_owned());
        let known = match (&beside, self.gallery.get()) {
            (Some(_), _) => None,
            // It is looked up once the gallery is there.
            (None, None) => return self.state.set(State::Coming),
            (None, Some(gallery)) => gallery.models.iter().find(|item| item.id == name).cloned(),
        };
        let shown = known.as_ref().map_or(name, |item| &item.title).to_owned();
        let number = self.begin(shown);
        let Some(address) = beside.or_else(|| known.and_then(|item| item.file)) else {
            return self.fail(number, Fault::Unknown(name.to_owned()));
        };
        spawn_local(async move {
            match fetch(&address).await {
                Some(bytes) => self.have(number, bytes),
                None => self.fail(number, Fault::Unreachable(address)),
            }
        });
    }

    fn ask(self, (engine, store): (Engine, Store), simulation: Simulation, file: Packed, entries: Draft) {
        let number = file.number;
        let first = self.seen.get_value() != number;
        let ask = Ask::Recorded {
            file,
            entries: entries.clone(),
            first,
        };
        self.resting.stop();
        self.patience
            .begin(PATIENCE, move || _ = simulation.stale.try_set(true));
        engine.ask(Slot::Run, ask, move |answer, _| {
            self.patience.stop();
            let Some(Answer::Recorded(answer)) = answer else { return };
            let Some(RecordedAnswer { facts, run }) = answer.open() else {
                return;
            };
            self.seen.set_value(number);
            match facts {
                Some(facts) => {
                    self.facts.set(Some(Arc::new(facts)));
                    self.number.set(Some(number));
                }
                // Another card may be refused, which leaves the facts as they are.
                None if first => self.forget(),
                None => {}
            }
            simulation.entries.set_value(entries.clone());
            let card = run.as_ref().ok().and_then(|run| run.card.as_ref().ok());
            if let Some(card) = card.filter(|_| first) {
                store.set(Key::Gpu, card.name.clone());
            }
            let is_shown = self.state.with_untracked(|state| *state == State::Ready);
            match run {
                Err(fault) if is_shown && is_typing() => {
                    simulation.stale.set(true);
                    self.resting
                        .begin(REST, move || self.show(engine, simulation, Err(fault)));
                }
                run => self.show(engine, simulation, run),
            }
        });
    }

    /// Shows a run, or why there is none.
    fn show(self, engine: Engine, simulation: Simulation, run: Result<RunView, Fault>) {
        let (outcome, state) = match run {
            Ok(run) => (Outcome::Ready(Arc::new(run)), State::Ready),
            Err(fault) => (Outcome::Refused(Refusal::Model(String::new())), State::Fault(fault)),
        };
        simulation.tell(engine, outcome);
        self.state.set(state);
    }
}

async fn fetch(address: &str) -> Option<Vec<u8>> {
    let response = Request::get(address).send().await.ok()?;
    match response.ok() {
        true => response.binary().await.ok(),
        false => None,
    }
}
