//! Texts of a setup's entries, and links to the plan page with them.

use serde_json::Value;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_plan::{Choice, Plan};

use crate::i18n::{Words, t_string};
use crate::shell::Store;
use crate::state::{Address, Form, Key, Route};
use crate::words;

/// Entries that a plan may change, in display order.
const TOLD: [Key; 7] = [
    Key::Freeze,
    Key::Precision,
    Key::Optim,
    Key::Ckpt,
    Key::Attn,
    Key::Loss,
    Key::ImageSizes,
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
        && let Ok(known) = serde_json::from_value(Value::from(value))
    {
        return tools_word(known).to_owned();
    }
    Key::named(entry).map_or_else(|| value.to_owned(), |key| words::choice(i18n, key, value))
}

/// Converts the entries of a setup to the page's texts.
fn texts(choice: &Choice) -> Vec<(Key, String)> {
    let Ok(Value::Object(setup)) = serde_json::to_value(&choice.setup) else {
        return Vec::new();
    };
    let all = Key::ALL.into_iter().filter(|key| key.in_setup());
    all.filter_map(|key| Some((key, text(key, setup.get(key.name())?))))
        .collect()
}

fn text(key: Key, value: &Value) -> String {
    match value {
        Value::Null => key.default_text().to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string().trim_end_matches(".0").to_owned(),
        Value::Array(parts) => {
            let sign = if key.form() == Form::Grid { "x" } else { ", " };
            let part = |part: &Value| match part {
                Value::Array(sides) => sides.iter().map(Value::to_string).collect::<Vec<_>>().join("x"),
                other => other.to_string(),
            };
            parts.iter().map(part).collect::<Vec<_>>().join(sign)
        }
        other => other.to_string(),
    }
}

/// Summarises a setup: the entries that a plan may change, and how samples are batched.
pub fn summary(i18n: Words, choice: &Choice) -> Vec<(String, String)> {
    let texts = texts(choice);
    let of = |key: Key| {
        let (_, text) = texts.iter().find(|(known, _)| *known == key)?;
        (!text.is_empty()).then(|| (words::label(i18n, key), words::choice(i18n, key, text)))
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

/// Name of a parallel strategy, as its library spells it.
const fn tools_word(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Ddp => "DDP",
        Strategy::DdpView => "DDP (gradient_as_bucket_view)",
        Strategy::Zero1 => "ZeRO-1",
        Strategy::Fsdp => "FSDP2",
        Strategy::FsdpNoReshard => "FSDP2 (reshard_after_forward=False)",
        Strategy::Tensor => "DistributedConfig(tp_size)",
        Strategy::Pipeline => "Schedule1F1B (torch.distributed.pipelining)",
        Strategy::PipelineGpipe => "ScheduleGPipe (torch.distributed.pipelining)",
    }
}

/// Describes the parallel setup of several GPUs.
fn strategy(parallel: &Parallel) -> String {
    let mut words = tools_word(parallel.strategy).to_owned();
    for (on, word) in [
        (parallel.mp, " + mixed precision"),
        (parallel.offload, " + CPU offload"),
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

/// Link to the plan page with a setup; `None` for several GPUs, which that page does not simulate.
pub fn planner(store: Store, choice: &Choice) -> Option<String> {
    choice.parallel.is_none().then(|| with(store.address(), choice))
}

/// Link to the plan page with a setup of another model and card.
pub fn planner_of(store: Store, choice: &Choice, model: &str, card: &str) -> String {
    let mut address = store.address();
    for (key, text) in [(Key::Config, ""), (Key::Model, model), (Key::Gpu, card)] {
        address.draft.set(key, text);
    }
    with(address, choice)
}

fn with(mut address: Address, choice: &Choice) -> String {
    address.route = Route::Plan;
    for (key, text) in texts(choice) {
        address.draft.set(key, text);
    }
    for key in Key::ALL.into_iter().filter(|key| key.of_plan()) {
        address.draft.set(key, key.default_text());
    }
    address.to_fragment()
}
