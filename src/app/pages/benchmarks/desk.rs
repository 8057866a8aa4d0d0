use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_benchmark::{Entry, List, Record};

use crate::benchmarks::{Answer, Asked, is_id, list_after, record_at, short_names};
use crate::fetched::{Got, get};
use crate::shell::Store;
use crate::state::Key;

/// Cards that are shown where nobody has chosen any.
const FIRST: usize = 2;
/// Cards that are shown at a time: so many have a colour of their own.
const MOST: usize = 7;
/// What the address holds where nothing is to be shown.
const NONE: &str = "none";

/// The published records, as far as they have come.
#[derive(Debug, Clone, PartialEq)]
pub enum Published {
    /// They are being asked for.
    Loading,
    /// These, and the place after which there are more.
    Here(List),
    /// None, for this reason; it is never [`Answer::Here`].
    Not(Answer<()>),
    /// The page is one file, beside which nothing can be asked for.
    OfFile,
}

/// A record that is here.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its id, or the file's name.
    pub id: String,
    /// The record.
    pub record: Arc<Record>,
}

/// What the page shows.
#[derive(Clone, Copy)]
pub struct Desk {
    /// The list.
    pub published: RwSignal<Published>,
    /// More of the list is being asked for.
    pub is_growing: RwSignal<bool>,
    /// Ids that were chosen, those of files among them.
    pub wanted: Memo<Vec<String>>,
    /// The chosen ones that are here, in the order in which they were chosen.
    pub shown: Memo<Shown>,
    /// What could not be read or had: a name and the reason.
    pub failed: RwSignal<Vec<(String, String)>>,
    local: RwSignal<Vec<(Held, bool)>>,
    fetched: RwSignal<Vec<Held>>,
    asked: StoredValue<Vec<String>>,
    token: StoredValue<String>,
}

/// Records that are shown. Equal where they are the same records.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The records.
    pub records: Vec<Held>,
    /// What they are called beside each other.
    pub names: Vec<String>,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        let ids = |shown: &Self| shown.records.iter().map(|held| held.id.clone()).collect::<Vec<_>>();
        ids(self) == ids(other)
    }
}

impl Shown {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records alone.
    pub fn plain(&self) -> Vec<&Record> {
        self.records.iter().map(|held| &*held.record).collect()
    }
}

impl Desk {
    /// Gives a desk to every component below, and asks for the published records.
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
        let desk = Self {
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
        provide_context(desk);
        desk.ask();
        Effect::new(move || desk.fetch(&desk.wanted.get()));
        desk
    }

    /// The desk that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Asks for the list from its beginning.
    pub fn ask(self) {
        // The page as one file asks nobody, wherever it lies.
        let is_one_file = document().get_element_by_id("part-wasm").is_some();
        if is_one_file || window().location().protocol().as_deref() == Ok("file:") {
            self.published.set(Published::OfFile);
            return;
        }
        self.published.set(Published::Loading);
        spawn_local(async move {
            let answer = self.get_text(&list_after(None)).await;
            // The person may have gone elsewhere meanwhile, here and below.
            self.published.try_set(match answer.as_asked().list() {
                Answer::Here(list) => Published::Here(list),
                other => Published::Not(other.without()),
            });
        });
    }

    /// Asks again, with a token.
    pub fn unlock(self, token: String) {
        self.token.set_value(token.trim().to_owned());
        self.ask();
    }

    /// Asks for the part of the list that follows.
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
                Answer::Here(more) => {
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

    /// Shows a record, or no longer.
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

    /// Takes in a file, and shows it.
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

    /// Files that were opened, and whether each is shown.
    pub fn local(self) -> Vec<(Held, bool)> {
        self.local.get()
    }

    /// Takes a file away.
    pub fn remove(self, id: &str) {
        self.local.update(|all| all.retain(|(held, _)| held.id != id));
    }

    fn say(self, name: String, why: String) {
        self.failed.try_update(|all| {
            all.retain(|(known, _)| *known != name);
            all.push((name, why));
        });
    }

    fn fail(self, name: String, answer: Answer<()>) {
        let why = match answer {
            Answer::NothingHere => "404".into(),
            Answer::Odd(why) => why,
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
                        Answer::Here(record) => {
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

/// An answer of the host.
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

/// The newest record of each of the first cards in a list.
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
