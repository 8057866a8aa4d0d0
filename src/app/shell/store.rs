use std::sync::Arc;
use std::time::Duration;

use leptos::prelude::*;

use crate::events::{Pending, listen};
use crate::state::{Address, Draft, Key, Reading, Route, UrlProblem};

/// The URL follows once entries have rested so long: browsers take milliseconds to take an address down, and some
/// take only so many.
const REST: Duration = Duration::from_millis(150);

/// An entry that may change soon.
#[derive(Clone)]
pub struct Near {
    /// Which.
    pub key: Key,
    /// The texts that one press changes it to, as it stands now.
    pub texts: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
}

/// What was entered, in step with the URL.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    draft: RwSignal<Draft>,
    route: RwSignal<Route>,
    problems: RwSignal<Vec<UrlProblem>>,
    reading: Memo<Reading>,
    near: RwSignal<Option<Near>>,
    /// What the URL is to say once entries have rested.
    wanted: StoredValue<Option<String>>,
    resting: Pending,
    /// What the URL said when it was last read or written. Where it says something else, somebody goes there, and the
    /// browser is about to tell: nothing may be written over it.
    seen: StoredValue<String>,
}

impl Store {
    /// Reads the URL, keeps it in step from now on, and gives the store to every component below.
    pub fn provide() -> Self {
        let (address, problems) = read_address();
        let draft = RwSignal::new(address.draft);
        let store = Self {
            draft,
            route: RwSignal::new(address.route),
            problems: RwSignal::new(problems),
            reading: Memo::new(move |last: Option<&Reading>| {
                let nothing = Draft::default();
                draft.with(|d| Reading::of(d, last.map_or(&nothing, |r| &r.good)))
            }),
            near: RwSignal::new(None),
            wanted: StoredValue::new(None),
            resting: Pending::new(),
            seen: StoredValue::new(fragment()),
        };
        provide_context(store);
        Effect::new(move || {
            store.wanted.set_value(Some(store.address().to_fragment()));
            store.resting.begin(REST, move || store.write_url());
        });
        listen(&window(), "hashchange", move |_| store.read_url());
        // Who leaves, or loads the page anew, finds what was entered last.
        listen(&window(), "pagehide", move |_| store.write_url());
        store
    }

    /// The URL says now what was entered.
    pub fn write_url(self) {
        let wanted = self.wanted.try_update_value(Option::take).flatten();
        let is_where_it_was = self.seen.try_with_value(|seen| *seen == fragment()).unwrap_or(false);
        if let Some(wanted) = wanted.filter(|_| is_where_it_was) {
            write_url(&wanted);
            self.seen.set_value(fragment());
        }
    }

    /// The store that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// The text of a key, followed as it changes.
    pub fn text(self, key: Key) -> String {
        self.draft.with(|d| d.get(key).to_owned())
    }

    /// Whether something other than the default is entered.
    pub fn has(self, key: Key) -> bool {
        self.draft.with(|d| d.has(key))
    }

    /// Enters a text.
    pub fn set(self, key: Key, text: impl Into<String>) {
        let text = text.into();
        if self.draft.with_untracked(|d| d.get(key) != text) {
            self.draft.update(|d| d.set(key, text));
        }
    }

    /// Enters several texts at once.
    pub fn edit(self, edit: impl FnOnce(&mut Draft)) {
        let mut draft = self.draft.get_untracked();
        edit(&mut draft);
        if self.draft.with_untracked(|d| *d != draft) {
            self.draft.set(draft);
        }
    }

    /// What was entered, as values.
    pub fn reading(self) -> Memo<Reading> {
        self.reading
    }

    /// The entry that somebody points at or has the focus on, or had last.
    pub fn near(self) -> RwSignal<Option<Near>> {
        self.near
    }

    /// The page that the URL names.
    pub fn route(self) -> RwSignal<Route> {
        self.route
    }

    /// What of the URL could not be used.
    pub fn problems(self) -> RwSignal<Vec<UrlProblem>> {
        self.problems
    }

    /// What the URL says, followed as it changes.
    pub fn address(self) -> Address {
        Address {
            route: self.route.get(),
            draft: self.draft.get(),
        }
    }

    /// The person went back, or edited the URL by hand.
    fn read_url(self) {
        self.wanted.set_value(None);
        self.seen.set_value(fragment());
        let (address, problems) = read_address();
        self.problems.set(problems);
        self.route.set(address.route);
        if self.draft.with_untracked(|d| *d != address.draft) {
            self.draft.set(address.draft);
        }
    }
}

/// What the URL says now.
pub(super) fn read_address() -> (Address, Vec<UrlProblem>) {
    let (mut address, problems) = Address::read(&fragment());
    address.read_query(&window().location().search().unwrap_or_default());
    (address, problems)
}

fn write_url(wanted: &str) {
    if fragment() != wanted {
        let history = window().history();
        // Where a frame's rules forbid it, the page works on without a URL.
        let _ = history.and_then(|h| h.replace_state_with_url(&wasm_bindgen::JsValue::NULL, "", Some(wanted)));
    }
}

fn fragment() -> String {
    window().location().hash().unwrap_or_default()
}
