use leptos::prelude::*;
use leptos_i18n::Locale as _;

use super::{Store, preferences};
use crate::i18n::{Locale, Words, t_string};
use crate::state::Key;

/// Languages with the name that their speakers know them by.
pub const LANGUAGES: [(Locale, &str); 3] = [
    (Locale::en, "English"),
    (Locale::zh_CN, "简体中文"),
    (Locale::zh_TW, "繁體中文"),
];

/// Keeps the page in the language of the URL, of an earlier choice, or of the browser.
pub fn follow(store: Store, i18n: Words) {
    // Other entries leave it alone: every word of the page follows it.
    let from_url = Memo::new(move |_| named(&store.text(Key::Lang)));
    let wanted = move || from_url.get().unwrap_or_else(preferred);
    i18n.set_locale(wanted());
    // Again once the translations' own start is over, which sets what it took from the browser.
    Effect::new(move || i18n.set_locale(wanted()));
    Effect::new(move || {
        document().set_title(t_string!(i18n, page.title));
        if let Some(root) = document().document_element() {
            // An attribute of the root element can always be set.
            root.set_attribute("lang", i18n.get_locale().as_str()).ok();
        }
    });
}

/// The person chose a language: it holds on this machine, and no longer comes from the URL.
pub fn choose(store: Store, i18n: Words, locale: Locale) {
    preferences::write("lang", Some(locale.as_str()));
    store.set(Key::Lang, "");
    i18n.set_locale(locale);
}

/// The language of this name, such as `zh-TW`.
pub fn named(name: &str) -> Option<Locale> {
    LANGUAGES.into_iter().map(|(l, _)| l).find(|l| l.as_str() == name)
}

fn preferred() -> Locale {
    preferences::read("lang")
        .and_then(|name| named(&name))
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
    let tag = tag.to_lowercase();
    let mut parts = tag.split('-');
    match parts.next()? {
        "en" => Some(Locale::en),
        "zh" if tag.contains("hans") => Some(Locale::zh_CN),
        "zh" if parts.any(|p| matches!(p, "hant" | "tw" | "hk" | "mo")) => Some(Locale::zh_TW),
        "zh" => Some(Locale::zh_CN),
        _ => None,
    }
}
