//! Names of settings, their choices, pages, parts of the results, and numbers.

use vramscope_engine::setup::Setting;

use crate::i18n::{PhraseIndex, Words, phrases, t_string};
use crate::pages::plan::Section;
use crate::state::{Key, Route, rank};
use crate::words;

/// Target of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The control of an entry.
    Entry(Key),
    /// A choice of an entry, which is taken.
    Choice(Key, &'static str),
    /// A page.
    Page(Route),
    /// A part of the planner's results.
    Section(Section),
    /// A number of the results, by its test id.
    Number(&'static str),
}

/// A name that can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Its target.
    pub place: Place,
    /// Id by which tests find it.
    pub id: String,
    /// Its words on screen.
    pub title: String,
    /// Kind of the target, in words.
    pub kind: String,
    /// Further words by which it is found.
    words: String,
}

/// Entries of the planner besides the settings of a run.
const ENTRIES: [Key; 11] = [
    Key::Model,
    Key::Gpu,
    Key::World,
    Key::Strategy,
    Key::Offload,
    Key::LimitGib,
    Key::Phase,
    Key::Samples,
    Key::PricePerHour,
    Key::Watts,
    Key::Data,
];

/// Numbers of the results: test id, and the phrase that names it.
const NUMBERS: [(&str, PhraseIndex); 8] = [
    ("peak-allocated", phrases::numbers::allocated),
    ("peak-reserved", phrases::numbers::reserved),
    ("outside-torch", phrases::numbers::outside),
    ("logits", phrases::numbers::logits),
    ("params", phrases::numbers::params),
    ("trainable", phrases::numbers::trainable),
    ("positions", phrases::numbers::positions),
    ("image-tokens", phrases::numbers::image_tokens),
];

/// Names that have every typed word, the nearest first, at most so many. Without a word: the pages.
pub fn found(i18n: Words, typed: &str, most: usize) -> Vec<Name> {
    let ranked = all(i18n).into_iter().enumerate().filter_map(|(at, name)| {
        // A word of the title counts more than one that stands behind it.
        let in_title = rank(typed, &name.title);
        let anywhere = rank(typed, &format!("{} {}", name.title, name.words))?;
        Some(((in_title.is_none(), in_title.unwrap_or(anywhere), at), name))
    });
    let mut found: Vec<_> = ranked.collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().take(most).map(|(_, name)| name).collect()
}

fn all(i18n: Words) -> Vec<Name> {
    let mut all = Vec::new();
    for route in Route::ALL {
        let title = phrases::nav::named(route.name()).map(|place| i18n.phrase(place).to_owned());
        if let Some(title) = title {
            all.push(Name {
                place: Place::Page(*route),
                id: format!("page:{}", route.name()),
                title,
                kind: t_string!(i18n, find.page).to_owned(),
                words: route.name().to_owned(),
            });
        }
    }
    let settings = Setting::ALL.iter().map(|setting| Key::Setting(*setting));
    let keys: Vec<Key> = ENTRIES.into_iter().chain(settings).collect();
    for key in &keys {
        all.push(Name {
            place: Place::Entry(*key),
            id: format!("entry:{}", key.name()),
            title: words::label(i18n, *key),
            kind: t_string!(i18n, find.setting).to_owned(),
            words: key.name().replace('_', " "),
        });
    }
    for section in Section::ALL {
        all.push(Name {
            place: Place::Section(section),
            id: format!("section:{}", section.id()),
            title: section.name(i18n).to_owned(),
            kind: t_string!(i18n, find.result).to_owned(),
            words: section.id().replace('-', " "),
        });
    }
    for (testid, phrase) in NUMBERS {
        all.push(Name {
            place: Place::Number(testid),
            id: format!("number:{testid}"),
            title: i18n.phrase(phrase).to_owned(),
            kind: t_string!(i18n, find.number).to_owned(),
            words: testid.replace('-', " "),
        });
    }
    for key in keys {
        for choice in key.choices() {
            all.push(Name {
                place: Place::Choice(key, choice),
                id: format!("choice:{}={choice}", key.name()),
                title: format!("{}: {}", words::label(i18n, key), words::choice(i18n, key, choice)),
                kind: t_string!(i18n, find.choice).to_owned(),
                words: format!("{} {choice}", key.name()),
            });
        }
    }
    all
}
