//! State of the benchmarks page.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_benchmark::{Entry, List, Record};

use crate::benchmarks::{Asked, Fetched, is_id, list_after, record_at, short_names};
use crate::fetched::{Got, get};
use crate::shell::Store;
use crate::state::Key;

/// Number of cards shown by default.
const FIRST: usize = 2;
/// Maximum number of cards shown at a time: one for each curve colour.
const MOST: usize = 7;
/// URL value for an empty selection.
const NONE: &str = "none";

/// List of published records, as far as it is loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// Request in progress.
    Loading,
    /// The records loaded so far, and the position at which the list continues.
    Here(List),
    /// No list, for this reason; never [`Fetched::Here`].
    Not(Fetched<()>),
    /// The page was opened as a single file, which has no server to ask.
    OfFile,
}

/// A loaded record.
#[derive(Debug, Clone)]
pub struct Held {
    /// Id of a published record, or name of a file.
    pub id: String,
    /// The record.
    pub record: Arc<Record>,
}

/// State of the benchmarks page.
#[derive(Clone, Copy)]
pub struct BenchmarksState {
    /// List of published records.
    pub published: RwSignal<Published>,
    /// True while more of the list is being loaded.
    pub is_growing: RwSignal<bool>,
    /// Selected ids, including those of local files.
    pub wanted: Memo<Vec<String>>,
    /// Selected records that are loaded, in the order of selection.
    pub shown: Memo<Shown>,
    /// Records and files that could not be read or fetched: name and reason.
    pub failed: RwSignal<Vec<(String, String)>>,
    local: RwSignal<Vec<(Held, bool)>>,
    fetched: RwSignal<Vec<Held>>,
    asked: StoredValue<Vec<String>>,
    token: StoredValue<String>,
}

/// Records that are shown; equal if they are the same records.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The records.
    pub records: Vec<Held>,
    /// Short names that tell them apart.
    pub names: Vec<String>,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        let ids = |shown: &Self| shown.records.iter().map(|held| held.id.clone()).collect::<Vec<_>>();
        ids(self) == ids(other)
    }
}

impl Shown {
    /// Returns true if no record is shown.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the records without their ids.
    pub fn plain(&self) -> Vec<&Record> {
        self.records.iter().map(|held| &*held.record).collect()
    }
}

impl BenchmarksState {
    /// Provides the state to all components below, and requests the published records.
    pub fn provide() -> Self {
        let (published, fetched) = (RwSignal::new(Published::Loading), RwSignal::new(Vec::<Held>::new()));
        let local = RwSignal::new(Vec::<(Held, bool)>::new());
        let store = Store::get();
        let chosen = Memo::new(move |_| store.text(Key::Records));
        let wanted = Memo::new(move |_| {
            let mut ids = match chosen.get().as_str() {
                "" => published.with(first),
                text => text.split(',').filter(|id| is_id(id)).map(str::to_owned).collect(),
            };
            local.with(|all| ids.extend(all.iter().filter(|(_, on)| *on).map(|(held, _)| held.id.clone())));
            ids
        });
        let shown = Memo::new(move |_| {
            let find = |id: String| {
                let of_host = fetched.with(|all| all.iter().find(|held| held.id == id).cloned());
                of_host.or_else(|| local.with(|all| all.iter().find(|(held, _)| held.id == id).map(|(h, _)| h.clone())))
            };
            let records: Vec<Held> = wanted.get().into_iter().filter_map(find).take(MOST).collect();
            let names: Vec<&str> = records.iter().map(|held| held.record.device.name.as_str()).collect();
            Shown {
                names: short_names(&names),
                records,
            }
        });
        let page = Self {
            published,
            is_growing: RwSignal::new(false),
            wanted,
            shown,
            failed: RwSignal::default(),
            local,
            fetched,
            asked: StoredValue::default(),
            token: StoredValue::default(),
        };
        provide_context(page);
        page.ask();
        Effect::new(move || page.fetch(&page.wanted.get()));
        page
    }

    /// Returns the state that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Requests the list from its beginning.
    pub fn ask(self) {
        // The single-file page never asks a server, wherever it was opened from.
        let is_one_file = document().get_element_by_id("part-wasm").is_some();
        if is_one_file || window().location().protocol().as_deref() == Ok("file:") {
            self.published.set(Published::OfFile);
            return;
        }
        self.published.set(Published::Loading);
        spawn_local(async move {
            let answer = self.get_text(&list_after(None)).await;
            // `try_set`, here and below, because the user may have left the page in the meantime.
            self.published.try_set(match answer.as_asked().list() {
                Fetched::Here(list) => Published::Here(list),
                other => Published::Not(other.without()),
            });
        });
    }

    /// Requests the list again with a token.
    pub fn unlock(self, token: String) {
        self.token.set_value(token.trim().to_owned());
        self.ask();
    }

    /// Requests the next part of the list.
    pub fn grow(self) {
        let next = self.published.with_untracked(|published| match published {
            Published::Here(list) => list.next,
            _ => None,
        });
        let Some(next) = next.filter(|_| !self.is_growing.get_untracked()) else {
            return;
        };
        self.is_growing.set(true);
        spawn_local(async move {
            let answer = self.get_text(&list_after(Some(next))).await;
            self.is_growing.try_set(false);
            match answer.as_asked().list() {
                Fetched::Here(more) => {
                    self.published.try_update(|published| {
                        if let Published::Here(list) = published {
                            list.records.extend(more.records);
                            list.next = more.next;
                        }
                    });
                }
                other => self.fail("data/records.json".into(), other.without()),
            }
        });
    }

    /// Selects or deselects a record.
    pub fn toggle(self, id: &str) {
        if self
            .local
            .with_untracked(|all| all.iter().any(|(held, _)| held.id == id))
        {
            self.local.update(|all| {
                all.iter_mut()
                    .filter(|(held, _)| held.id == id)
                    .for_each(|(_, on)| *on = !*on);
            });
            return;
        }
        let mut ids: Vec<String> = self.wanted.get_untracked().into_iter().filter(|id| is_id(id)).collect();
        match ids.iter().position(|known| known == id) {
            Some(place) => drop(ids.remove(place)),
            None => ids.push(id.to_owned()),
        }
        let text = if ids.is_empty() { NONE.into() } else { ids.join(",") };
        Store::get().set(Key::Records, text);
    }

    /// Reads a file and selects its record.
    pub fn take(self, name: String, text: &str) {
        match Record::read(text) {
            Ok(record) if record.results.is_empty() => self.say(name, "no results".into()),
            Ok(record) => self.local.update(|all| {
                all.retain(|(held, _)| held.id != name);
                let held = Held {
                    id: name,
                    record: Arc::new(record),
                };
                all.push((held, true));
            }),
            Err(error) => self.say(name, error.to_string()),
        }
    }

    /// Opened files, and whether each one is shown.
    pub fn local(self) -> Vec<(Held, bool)> {
        self.local.get()
    }

    /// Removes a file.
    pub fn remove(self, id: &str) {
        self.local.update(|all| all.retain(|(held, _)| held.id != id));
    }

    fn say(self, name: String, why: String) {
        self.failed.try_update(|all| {
            all.retain(|(known, _)| *known != name);
            all.push((name, why));
        });
    }

    fn fail(self, name: String, answer: Fetched<()>) {
        let why = match answer {
            Fetched::NothingHere => "404".into(),
            Fetched::Odd(why) => why,
            other => format!("{other:?}").to_lowercase(),
        };
        self.say(name, why);
    }

    fn fetch(self, ids: &[String]) {
        for id in ids.iter().filter(|id| is_id(id)) {
            let is_new = self.asked.try_update_value(|asked| {
                let is_new = !asked.contains(id);
                asked.push(id.clone());
                is_new
            });
            if is_new == Some(true) {
                let id = id.clone();
                spawn_local(async move {
                    let answer = self.get_text(&record_at(&id)).await;
                    match answer.as_asked().record() {
                        Fetched::Here(record) => {
                            let record = Arc::new(record);
                            self.fetched.try_update(|all| all.push(Held { id, record }));
                        }
                        other => {
                            self.asked.try_update_value(|asked| asked.retain(|known| *known != id));
                            self.fail(id.chars().take(12).collect(), other.without());
                        }
                    }
                });
            }
        }
    }

    async fn get_text(self, address: &str) -> Answered {
        let token = self.token.try_get_value().unwrap_or_default();
        Answered {
            got: get(address, &token).await,
            with_token: !token.is_empty(),
        }
    }
}

/// A response of the server.
struct Answered {
    got: Got,
    with_token: bool,
}

impl Answered {
    fn as_asked(&self) -> Asked<'_> {
        Asked {
            status: self.got.status,
            text: &self.got.text,
            with_token: self.with_token,
        }
    }
}

/// Ids of the newest records of the first cards in a list.
fn first(published: &Published) -> Vec<String> {
    let Published::Here(list) = published else {
        return Vec::new();
    };
    let mut cards: Vec<&Entry> = Vec::new();
    for entry in &list.records {
        if cards.len() < FIRST && cards.iter().all(|known| known.device != entry.device) {
            cards.push(entry);
        }
    }
    cards.into_iter().map(|entry| entry.id.clone()).collect()
}
