//! State of a combobox: the typed text, its matches, and the highlighted option.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use vramscope_engine::order::sort_by_key;

use super::ComboOption;
use crate::shell::Store;
use crate::state::{Key, rank, without_host};

/// What takes texts that are no choice.
#[derive(Debug, Clone, Copy)]
pub struct TakesOther {
    /// Takes a text, a choice or another, as the entry. The flag is true while it is still being typed.
    pub take: Callback<(String, bool)>,
    /// Told whether a text is typed that is not the entry.
    pub typing: RwSignal<bool>,
}

/// State of a combobox.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Key of the entry.
    pub key: Key,
    /// Store that holds the entry.
    pub store: Store,
    /// All choices.
    pub options: Signal<Vec<ComboOption>>,
    /// What takes other texts.
    pub other: Option<TakesOther>,
    /// The text typed since the list opened.
    pub typed: RwSignal<Option<String>>,
    /// Index of the highlighted option among the matches.
    pub marked: RwSignal<usize>,
}

impl Search {
    /// Returns true if the list is open.
    pub fn is_open(self) -> bool {
        self.typed.with(Option::is_some)
    }

    /// Returns the options that have every typed word, the nearest first, and the typed text itself where any is taken.
    pub fn found(self) -> Vec<ComboOption> {
        let typed = self.typed.get().unwrap_or_default();
        let mut found = self.matches(&typed);
        let other = without_host(&typed);
        if self.other.is_some() && !other.is_empty() && !found.iter().any(|option| is_same(&option.value, other)) {
            found.push(ComboOption {
                value: other.to_owned(),
                detail: String::new(),
                words: String::new(),
                group: String::new(),
            });
        }
        found
    }

    fn matches(self, typed: &str) -> Vec<ComboOption> {
        let typed = without_host(typed);
        let ranked = |o: ComboOption| {
            let rank = rank(typed, &o.words)?;
            // What is typed in full comes first.
            Some(((!is_same(&o.value, typed), rank), o))
        };
        let mut found: Vec<_> = self.options.get().into_iter().filter_map(ranked).collect();
        // Groups stay together, in the order of the nearest of each.
        let groups: Vec<(String, (bool, usize))> = found.iter().fold(Vec::new(), |mut groups, (rank, option)| {
            match groups.iter_mut().find(|(group, _)| *group == option.group) {
                Some((_, best)) => *best = (*best).min(*rank),
                None => groups.push((option.group.clone(), *rank)),
            }
            groups
        });
        sort_by_key(&mut found, |(rank, option)| {
            let place = groups.iter().position(|(group, _)| *group == option.group).unwrap_or(0);
            (groups.get(place).map(|(_, best)| *best), place, *rank)
        });
        found.into_iter().map(|(_, option)| option).collect()
    }

    /// Returns true for the row of a text that is no choice.
    pub fn is_other(self, value: &str) -> bool {
        self.other.is_some()
            && self
                .options
                .with_untracked(|all| all.iter().all(|option| option.value != value))
    }

    /// Opens the list at the current choice.
    pub fn open(self) {
        if !self.is_open() {
            self.typed.set(Some(String::new()));
            let now = self.store.text(self.key);
            let at = self.options.with(|all| all.iter().position(|o| o.value == now));
            self.mark(at.unwrap_or(0));
        }
    }

    /// Closes the list and keeps the current choice.
    pub fn close(self) {
        self.typed.set(None);
        self.tell(false);
    }

    /// Leaves the field. A typed text that is a choice, or none at all, is taken; a word of several choices is not.
    pub fn leave(self) {
        let typed = self.typed.get_untracked().unwrap_or_default();
        if let (Some(other), false) = (self.other, typed.trim().is_empty()) {
            let name = without_host(&typed);
            let same = self.options.with_untracked(|all| {
                let same = all.iter().find(|option| is_same(&option.value, name));
                same.map(|option| option.value.clone())
            });
            let is_whole = name.contains('/') || untrack(|| self.matches(&typed)).is_empty();
            if same.is_some() || is_whole {
                other.take.run((same.unwrap_or_else(|| name.to_owned()), false));
            }
        }
        self.close();
    }

    fn tell(self, is_typing: bool) {
        if let Some(other) = self.other {
            other.typing.set(is_typing);
        }
    }

    /// Filters the list by a text. One that is no choice is the entry as it is typed: what is shown for another would be
    /// taken for its.
    pub fn narrow(self, text: String) {
        let name = without_host(&text).to_owned();
        let is_typing = !name.is_empty() && name != self.store.text(self.key);
        self.tell(is_typing);
        self.typed.set(Some(text));
        self.mark(0);
        if let Some(other) = self
            .other
            .filter(|_| is_typing && untrack(|| self.matches(&name)).is_empty())
        {
            other.take.run((name, true));
        }
    }

    /// Selects a choice.
    pub fn pick(self, value: &str) {
        match self.other {
            Some(other) => other.take.run((value.to_owned(), false)),
            None => self.store.set(self.key, value),
        }
        self.close();
    }

    fn pick_marked(self) {
        if let Some(option) = self.found().get(self.marked.get()) {
            self.pick(&option.value);
        }
    }

    fn mark(self, place: usize) {
        self.marked.set(place);
        // Runs after the list is rendered.
        request_animation_frame(move || {
            let id = option_id(self.key, place);
            if let Some(element) = document().get_element_by_id(&id) {
                scroll_into_list(&element);
            }
        });
    }

    /// Handles the keys of an editable combobox as the ARIA Authoring Practices Guide defines them.
    pub fn on_key(self, event: KeyboardEvent) {
        let last = self.found().len().saturating_sub(1);
        let place = self.marked.get();
        match event.key().as_str() {
            "ArrowDown" | "ArrowUp" if !self.is_open() => self.open(),
            "ArrowDown" => self.mark((place + 1).min(last)),
            "ArrowUp" => self.mark(place.saturating_sub(1)),
            "Home" if self.is_open() => self.mark(0),
            "End" if self.is_open() => self.mark(last),
            "Enter" if self.is_open() => self.pick_marked(),
            "Escape" => self.close(),
            _ => return,
        }
        event.prevent_default();
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Element id of an option; assistive technology uses it to follow the highlight.
pub fn option_id(key: Key, place: usize) -> String {
    format!("option-{}-{place}", key.name())
}

/// Scrolls the list, but not the page around it, to centre the option.
fn scroll_into_list(option: &web_sys::Element) {
    let Some(list) = option.parent_element() else { return };
    let (option, frame) = (option.get_bounding_client_rect(), list.get_bounding_client_rect());
    if option.top() < frame.top() || option.bottom() > frame.bottom() {
        let middle = frame.top() + (frame.height() - option.height()) / 2.0;
        list.set_scroll_top(list.scroll_top() + (option.top() - middle) as i32);
    }
}
