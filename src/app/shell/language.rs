use leptos::prelude::*;

use super::preferences;
use super::store::{Store, read_address};
use crate::i18n::{Locale, Words, t_string};
use crate::state::Key;

/// The language to begin in: that of the URL, of an earlier choice, or of the browser.
pub fn first() -> Locale {
    let (address, _) = read_address();
    Locale::named(address.draft.get(Key::Lang)).unwrap_or_else(preferred)
}

/// Keeps the page in the language of the URL, of an earlier choice, or of the browser.
pub fn follow(store: Store, i18n: Words) {
    // Other entries leave it alone: every word of the page follows it.
    let from_url = Memo::new(move |_| Locale::named(&store.text(Key::Lang)));
    Effect::new(move || i18n.speak(from_url.get().unwrap_or_else(preferred)));
    Effect::new(move || {
        document().set_title(t_string!(i18n, page.title));
        if let Some(root) = document().document_element() {
            // An attribute of the root element can always be set.
            root.set_attribute("lang", i18n.locale().as_str()).ok();
        }
    });
}

/// The person chose a language: it holds on this machine, and no longer comes from the URL.
pub fn choose(store: Store, i18n: Words, locale: Locale) {
    preferences::write("lang", Some(locale.as_str()));
    store.set(Key::Lang, "");
    i18n.speak(locale);
}

fn preferred() -> Locale {
    preferences::read("lang")
        .and_then(|name| Locale::named(&name))
        .or_else(|| browser_languages().iter().find_map(|tag| closest(tag)))
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

/// The language of the page for a browser's tag, by script first and region second.
fn closest(tag: &str) -> Option<Locale> {
    let tag = tag.to_ascii_lowercase();
    let mut parts = tag.split('-');
    match parts.next()? {
        "en" => Some(Locale::En),
        "zh" if tag.contains("hans") => Some(Locale::ZhCn),
        "zh" if parts.any(|p| matches!(p, "hant" | "tw" | "hk" | "mo")) => Some(Locale::ZhTw),
        "zh" => Some(Locale::ZhCn),
        _ => None,
    }
}
