//! Texts of a setup's entries, and links to the plan page with them.

use vramscope_engine::setup::{Parallel, Setting, Strategy};
use vramscope_plan::{Choice, Plan};

use crate::i18n::{Words, t_string};
use crate::shell::Store;
use crate::state::{Address, Key, Route, Scope};
use crate::words;

/// Entries that a plan may change, in display order.
const TOLD: [Setting; 7] = [
    Setting::Freeze,
    Setting::Precision,
    Setting::Optim,
    Setting::Ckpt,
    Setting::Attn,
    Setting::Loss,
    Setting::ImageSizes,
];

/// Name of an entry that a plan may change.
pub fn name(i18n: Words, entry: &str) -> String {
    match entry {
        "resolution" => t_string!(i18n, recommend.resolution).to_string(),
        "strategy" => t_string!(i18n, recommend.strategy).to_string(),
        "offload" => t_string!(i18n, recommend.offload).to_string(),
        "sample" => t_string!(i18n, recommend.sample).to_string(),
        name => Key::named(name).map_or_else(|| name.to_owned(), |key| words::label(i18n, key)),
    }
}

/// Text of an entry's value.
pub fn value(i18n: Words, entry: &str, value: &str) -> String {
    if entry == "strategy"
        && let Some(title) = Strategy::CHOICES.title_of(value)
    {
        return title.to_owned();
    }
    Key::named(entry).map_or_else(|| value.to_owned(), |key| words::choice(i18n, key, value))
}

/// Summarises a setup: the entries that a plan may change, and how samples are batched.
pub fn summary(i18n: Words, choice: &Choice) -> Vec<(String, String)> {
    let of = |setting: Setting| {
        let (key, text) = (Key::Setting(setting), setting.of(&choice.setup).text());
        (!text.is_empty()).then(|| (words::label(i18n, key), words::choice(i18n, key, &text)))
    };
    let mut all: Vec<(String, String)> = TOLD.into_iter().filter_map(of).collect();
    let samples = format!("{} × {}", choice.setup.batch, choice.setup.accum);
    all.push((t_string!(i18n, recommend.batch_accum).to_string(), samples));
    all.extend(
        choice
            .parallel
            .as_ref()
            .map(|parallel| (name(i18n, "strategy"), strategy(parallel))),
    );
    all
}

/// Describes the parallel setup of several GPUs.
fn strategy(parallel: &Parallel) -> String {
    let name = parallel.strategy.name();
    let mut words = Strategy::CHOICES.title_of(name).unwrap_or(name).to_owned();
    for (on, word) in [
        (parallel.mp, " + mixed precision"),
        (parallel.offload.is_any(), " + CPU offload"),
    ] {
        words += if on { word } else { "" };
    }
    words
}

/// Summarises how a setup differs from the requested one.
pub fn differing(i18n: Words, plan: &Plan, choice: &Choice) -> String {
    let asked = Choice {
        setup: plan.asked.clone(),
        parallel: None,
        ..choice.clone()
    };
    let asked = summary(i18n, &asked);
    let own = summary(i18n, choice).into_iter();
    let own = own.filter(|pair| !asked.contains(pair) || pair.1.contains(" × "));
    own.map(|(_, value)| value).collect::<Vec<_>>().join(" · ")
}

/// Link to the plan page with a setup.
pub fn planner(store: Store, choice: &Choice) -> String {
    with(store.address(), choice)
}

/// Link to the plan page with a setup of another model and card.
pub fn planner_of(store: Store, choice: &Choice, model: &str, card: &str) -> String {
    let mut address = store.address();
    for (key, text) in [(Key::Config, ""), (Key::Model, model), (Key::Gpu, card)] {
        address.draft.set(key, text);
    }
    address.draft.stand_in(None);
    with(address, choice)
}

fn with(mut address: Address, choice: &Choice) -> String {
    address.route = Route::Plan;
    for setting in Setting::ALL {
        address.draft.set(*setting, setting.of(&choice.setup).text());
    }
    for key in Key::all().filter(|key| key.scope() == Scope::Plan) {
        address.draft.set(key, key.default_text());
    }
    address.draft.share(choice.parallel.as_ref());
    address.to_fragment()
}
