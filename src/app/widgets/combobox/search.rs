//! State of a combobox: the typed text, its matches, and the highlighted option.

use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use vramscope_engine::order::sort_by_key;

use super::ComboOption;
use crate::shell::Store;
use crate::state::{Key, rank};

/// State of a combobox.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Key of the entry.
    pub key: Key,
    /// Store that holds the entry.
    pub store: Store,
    /// All choices.
    pub options: Signal<Vec<ComboOption>>,
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

    /// Returns the options that have every typed word in their value or group, the nearest first.
    pub fn found(self) -> Vec<ComboOption> {
        let typed = self.typed.get().unwrap_or_default();
        // The address of a page of the hub stands for the name in it.
        let typed = typed.rsplit_once("huggingface.co/").map_or(&*typed, |(_, name)| name);
        let ranked = |o: ComboOption| Some((rank(typed, &format!("{} {}", o.group, o.value))?, o));
        let mut found: Vec<_> = self.options.get().into_iter().filter_map(ranked).collect();
        // Groups stay together: only options without one are ordered.
        if found.iter().all(|(_, option)| option.group.is_empty()) {
            sort_by_key(&mut found, |(rank, _)| *rank);
        }
        found.into_iter().map(|(_, option)| option).collect()
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
    }

    /// Filters the list by a text.
    pub fn narrow(self, text: String) {
        self.typed.set(Some(text));
        self.mark(0);
    }

    /// Selects a choice.
    pub fn pick(self, value: &str) {
        self.store.set(self.key, value);
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
