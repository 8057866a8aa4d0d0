//! The user's entries, synchronised with the URL.

use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;

use super::{History, preferences};
use crate::events::{Pending, listen};
use crate::state::{Address, Draft, Key, Reading, Route, UrlProblem, is_of_setup, is_open, with_latest};

/// Delay between the last entry and the URL update: setting an address takes browsers milliseconds, and some limit how
/// often it may be done.
const REST: Duration = Duration::from_millis(150);

/// Milliseconds without a key press after which a text counts as typed: what is on screen by then is the result to keep.
const TYPED: f64 = 1500.0;

/// Where this browser keeps the latest setups.
const LATEST: &str = "recent";

/// An entry that may change soon: it has the focus or the pointer.
#[derive(Clone)]
pub struct Prefetch {
    /// Key of the entry.
    pub key: Key,
    /// Texts that one click or key press would change it to, computed from its current state.
    pub texts: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
}

/// An entry that is being typed.
#[derive(Debug, Clone)]
struct Typing {
    key: Key,
    /// Last text that was valid before the typing began.
    before: String,
    /// Time of the last key press.
    at: f64,
}

/// The user's entries, synchronised with the URL.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    draft: RwSignal<Draft>,
    /// True if the visit began without a setup of its own.
    is_new: bool,
    route: RwSignal<Route>,
    problems: RwSignal<Vec<UrlProblem>>,
    reading: Memo<Reading>,
    prefetch: RwSignal<Option<Prefetch>>,
    typing: StoredValue<Option<Typing>>,
    /// Fragment to write once the entries have settled.
    wanted: StoredValue<Option<Address>>,
    /// Address at the last read or write.
    written: StoredValue<Address>,
    history: History,
    resting: Pending,
    /// Fragment at the last read or write. If the URL now differs, a navigation is in progress whose event has not
    /// arrived yet, and it must not be overwritten.
    seen: StoredValue<String>,
}

impl Store {
    /// Reads the URL, keeps it synchronised and provides the store to all components below.
    pub fn provide() -> Self {
        let is_new = is_open(&fragment());
        let (address, problems) = read_address();
        let draft = RwSignal::new(address.draft.clone());
        let typing = StoredValue::new(None::<Typing>);
        // An invalid text stands for what was valid before it was typed: of `4x`, the 4 was no answer.
        let fallback = move |last: Option<&Reading>| {
            let mut good = last.map(|last| last.good.clone()).unwrap_or_default();
            typing.with_value(|typing| {
                if let Some(Typing { key, before, .. }) = typing {
                    good.set(*key, before.clone());
                }
            });
            good
        };
        let store = Self {
            draft,
            is_new,
            route: RwSignal::new(address.route),
            problems: RwSignal::new(problems),
            reading: Memo::new(move |last: Option<&Reading>| draft.with(|d| Reading::of(d, &fallback(last)))),
            prefetch: RwSignal::new(None),
            typing,
            wanted: StoredValue::new(None),
            written: StoredValue::new(address),
            history: History::begin(),
            resting: Pending::new(),
            seen: StoredValue::new(fragment()),
        };
        provide_context(store);
        Effect::new(move || {
            store.wanted.set_value(Some(store.address()));
            store.resting.begin(REST, move || store.write_url());
        });
        listen(&window(), "hashchange", move |_| store.read_url());
        // Write the URL before the page goes away, so that a return or reload restores the latest entries.
        listen(&window(), "pagehide", move |_| store.write_url());
        store
    }

    /// Writes pending entries to the URL at once.
    pub fn write_url(self) {
        let wanted = self.wanted.try_update_value(Option::take).flatten();
        let is_where_it_was = self.seen.try_with_value(|seen| *seen == fragment()).unwrap_or(false);
        let Some(wanted) = wanted.filter(|_| is_where_it_was) else {
            return;
        };
        let new = wanted.to_fragment();
        if fragment() != new {
            let changed = self.written.with_value(|written| {
                let is_elsewhere = wanted.route != written.route;
                let changed = wanted.draft.changed(&written.draft);
                // Steps in a frame would come before those of the page around it.
                (!wanted.draft.has(Key::Embed) && (is_elsewhere || !changed.is_empty())).then_some(changed)
            });
            let is_kept = changed
                .as_ref()
                .is_some_and(|changed| changed.iter().any(|key| key.decides_run()));
            let is_new = self.history.write(&new, changed);
            self.seen.set_value(fragment());
            if is_kept && wanted.route == Route::Plan {
                self.keep_latest(!is_new);
            }
        }
        self.written.set_value(wanted);
    }

    /// The latest setups of this browser, a query a line.
    pub fn latest() -> String {
        preferences::read(LATEST).unwrap_or_default()
    }

    /// Keeps the setup on screen among the latest of this browser.
    fn keep_latest(self, continues: bool) {
        let query = self
            .reading
            .with_untracked(|reading| reading.good.only(is_of_setup).to_query());
        let lines = Self::latest();
        preferences::write(LATEST, Some(&with_latest(&lines, &query, continues)));
    }

    /// Returns true if the visit began without a setup of its own.
    pub fn is_new(self) -> bool {
        self.is_new
    }

    /// Returns the store that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Text of a key; reactive.
    pub fn text(self, key: impl Into<Key>) -> String {
        let key = key.into();
        self.draft.with(|d| d.get(key).to_owned())
    }

    /// Returns true if the key differs from its default; reactive.
    pub fn has(self, key: impl Into<Key>) -> bool {
        let key = key.into();
        self.draft.with(|d| d.has(key))
    }

    /// Sets the text of a key.
    pub fn set(self, key: impl Into<Key>, text: impl Into<String>) {
        let (key, text) = (key.into(), text.into());
        if self.draft.with_untracked(|d| d.get(key) != text) {
            self.draft.update(|d| d.set(key, text));
        }
    }

    /// Sets the text of a key as a person types it, letter by letter.
    pub fn type_text(self, key: Key, text: String) {
        self.continue_typing(key);
        self.set(key, text);
    }

    /// Says that the next change of a key is one of its letters.
    pub fn continue_typing(self, key: Key) {
        let at = js_sys::Date::now();
        let typing = self.typing.with_value(Clone::clone);
        let before = match typing.filter(|typing| typing.key == key && at - typing.at < TYPED) {
            Some(typing) => typing.before,
            None => self.reading.with_untracked(|reading| reading.good.get(key).to_owned()),
        };
        self.typing.set_value(Some(Typing { key, before, at }));
    }

    /// Says that what was typed so far is whole.
    pub fn end_typing(self) {
        self.typing.set_value(None);
    }

    /// Changes several texts at once.
    pub fn edit(self, edit: impl FnOnce(&mut Draft)) {
        let mut draft = self.draft.get_untracked();
        edit(&mut draft);
        if self.draft.with_untracked(|d| *d != draft) {
            self.draft.set(draft);
        }
    }

    /// Entries as typed values.
    pub fn reading(self) -> Memo<Reading> {
        self.reading
    }

    /// Entry that has, or last had, the pointer or the focus.
    pub fn prefetch(self) -> RwSignal<Option<Prefetch>> {
        self.prefetch
    }

    /// Route given by the URL.
    pub fn route(self) -> RwSignal<Route> {
        self.route
    }

    /// Steps through the setups of this visit.
    pub fn history(self) -> History {
        self.history
    }

    /// Parts of the URL that could not be used.
    pub fn problems(self) -> RwSignal<Vec<UrlProblem>> {
        self.problems
    }

    /// Current state as an address; reactive.
    pub fn address(self) -> Address {
        Address {
            route: self.route.get(),
            draft: self.draft.get(),
        }
    }

    /// Address that stays the same run when a default changes.
    pub fn link_to_keep(self) -> String {
        let address = untrack(|| self.address());
        let here = window().location().href().unwrap_or_default();
        let page = here.split('#').next().unwrap_or_default();
        page.to_owned() + &address.to_whole_fragment()
    }

    /// Applies a URL change by the user: history navigation or a manual edit.
    fn read_url(self) {
        self.wanted.set_value(None);
        self.seen.set_value(fragment());
        let (address, problems) = read_address();
        self.history.follow();
        self.written.set_value(address.clone());
        self.problems.set(problems);
        self.route.set(address.route);
        if self.draft.with_untracked(|d| *d != address.draft) {
            self.draft.set(address.draft);
        }
    }
}

/// Reads the state in the current URL. One without a setup opens on one that fits; a widget is given its own.
pub(super) fn read_address() -> (Address, Vec<UrlProblem>) {
    let (mut address, problems) = Address::read(&fragment());
    address.read_query(&window().location().search().unwrap_or_default());
    if is_open(&fragment()) && !address.draft.has(Key::Embed) {
        address.draft.open();
    }
    (address, problems)
}

fn fragment() -> String {
    window().location().hash().unwrap_or_default()
}
