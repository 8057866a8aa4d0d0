//! Selects the page's language.

use leptos::prelude::*;

use super::preferences;
use super::store::{Store, read_address};
use crate::i18n::{Locale, Words, t_string};
use crate::state::Key;

/// Returns the initial language: from the URL, an earlier choice, or the browser.
pub fn initial() -> Locale {
    let (address, _) = read_address();
    Locale::named(address.draft.get(Key::Lang)).unwrap_or_else(preferred)
}

/// Follows the language of the URL, an earlier choice, or the browser.
pub fn follow(store: Store, i18n: Words) {
    // Memoised so that other entries do not trigger it: every text on the page depends on it.
    let from_url = Memo::new(move |_| Locale::named(&store.text(Key::Lang)));
    Effect::new(move || i18n.speak(from_url.get().unwrap_or_else(preferred)));
    Effect::new(move || {
        document().set_title(t_string!(i18n, page.title));
        if let Some(root) = document().document_element() {
            // Setting an attribute on the root element cannot fail.
            root.set_attribute("lang", i18n.locale().as_str()).ok();
        }
    });
}

/// Switches to a language, stores it on this machine and removes it from the URL.
pub fn choose(store: Store, i18n: Words, locale: Locale) {
    preferences::write("lang", Some(locale.as_str()));
    store.set(Key::Lang, "");
    i18n.speak(locale);
}

fn preferred() -> Locale {
    preferences::read("lang")
        .and_then(|name| Locale::named(&name))
        .or_else(|| browser_languages().iter().find_map(|tag| Locale::closest(tag)))
        .unwrap_or_default()
}

fn browser_languages() -> Vec<String> {
    window()
        .navigator()
        .languages()
        .iter()
        .filter_map(|tag| tag.as_string())
        .collect()
}
