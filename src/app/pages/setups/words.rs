//! What a setup is called where nobody has named it.

use vramscope_engine::setup::Setting;

use crate::i18n::{Words, t_string};
use crate::pages::plan::shown;
use crate::state::{Draft, Key};
use crate::words;

/// Most entries that are told of a setup.
const MOST: usize = 4;

/// Model, what is trained, and card.
pub fn title(i18n: Words, setup: &Draft) -> String {
    let model = setup.model_name().unwrap_or("config.json");
    let freeze = Key::Setting(Setting::Freeze);
    let card = match setup.get(Key::World) {
        "1" => setup.get(Key::Gpu).to_owned(),
        gpus => format!("{gpus} × {}", setup.get(Key::Gpu)),
    };
    let mut parts = vec![model.to_owned(), card];
    if setup.has(freeze) {
        parts.insert(1, words::choice(i18n, freeze, setup.get(freeze)));
    }
    parts.join(" · ")
}

/// What else differs from the defaults.
pub fn detail(i18n: Words, setup: &Draft) -> String {
    let in_title = [
        Key::Model,
        Key::Config,
        Key::Gpu,
        Key::World,
        Key::Setting(Setting::Freeze),
    ];
    let others: Vec<_> = setup.entries().filter(|(key, _)| !in_title.contains(key)).collect();
    let one =
        |(key, text): &(Key, &str)| format!("{} {}", words::label(i18n, *key), shown(i18n, *key, (*text).to_owned()));
    let mut told: Vec<String> = others.iter().take(MOST).map(one).collect();
    if let Some(more) = others.len().checked_sub(MOST).filter(|more| *more > 0) {
        told.push(t_string!(i18n, setups.more, more = more.to_string()));
    }
    told.join(", ")
}
