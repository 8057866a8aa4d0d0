//! What a dataset tells of the setup: how long its samples are, how large its images, and what padding costs.

use std::sync::Arc;

use leptos::prelude::*;
use vramscope_engine::format::grouped;
use vramscope_engine::order::sort_by_key;
use vramscope_engine::setup::Setting;
use vramscope_engine::{Model, Setup};

use super::reading::{Reading, State};
use super::shares::Histogram;
use super::table::Percentiles;
use crate::i18n::{Words, t, t_string, use_i18n};
use crate::part::part;
use crate::shell::{Given, Store};
use crate::simulation::Simulation;
use crate::widgets::ProgressLine;
use vramscope_dataset::{Dataset, ImageTokens, Sample, Summary, Text, Unread};

/// Percentages that are shown and can be taken.
pub const PERCENTS: [(&str, f64); 4] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("max", 100.0)];
/// Bytes of UTF-8 that a token of a large vocabulary stands for, as a rule: four letters of English, a little more than one
/// Chinese character.
const BYTES_PER_TOKEN: f64 = 4.0;
/// Most samples of a micro-batch whose lengths are entered one by one.
const MOST_LISTED: u64 = 64;

/// What is told of a dataset for a model and a micro-batch.
pub struct Facts {
    /// Tokens of all samples, with those of their images.
    pub lengths: Summary,
    /// Sizes of the images of all samples that have them, the fewest pixels first; `None` if the file or the model has
    /// none.
    pub sizes: Option<Vec<Vec<[u32; 2]>>>,
    /// The entries.
    pub store: Store,
    /// Samples of a micro-batch.
    batch: u64,
}

/// Reads the dataset that is given, and shows what it tells.
#[component]
pub fn DatasetPanel() -> impl IntoView {
    let i18n = use_i18n();
    let dataset = Given::get().dataset;
    let reading = Reading::new();
    let ratio = RwSignal::new(BYTES_PER_TOKEN.to_string());
    Effect::new(move || {
        if let Some(file) = dataset.get() {
            reading.begin(file);
        }
    });
    let name = move || dataset.with(|file| file.as_ref().map(|file| file.name()).unwrap_or_default());
    let found = part(move || {
        // Words in it are of one language.
        i18n.locale();
        Some(match reading.state.get() {
            State::Reading => view! { <p class="muted">{t!(i18n, dataset.reading)}</p> }.into_any(),
            State::Stopped => view! { <p class="muted">{t!(i18n, dataset.stopped)}</p> }.into_any(),
            State::Lost => wrong(t_string!(i18n, dataset.lost).to_owned()),
            State::Unread(why) => wrong(unread(i18n, &why)),
            State::Read(found) => view! { <Found found ratio /> }.into_any(),
        })
    });
    view! {
        <section class="card dataset" data-testid="dataset">
            <div class="dataset-head">
                <h2>{t!(i18n, dataset.title)} " " <span class="muted dataset-name">{name}</span></h2>
                <button type="button" class="tool" data-testid="dataset-close" on:click=move |_| dataset.set(None)>
                    {t!(i18n, make_fit.close)}
                </button>
            </div>
            <ProgressLine progress=reading.progress stop=move || reading.stop() />
            {found}
        </section>
    }
}

fn wrong(words: String) -> AnyView {
    view! { <p class="refusal-message" role="alert" data-testid="dataset-wrong">{words}</p> }.into_any()
}

fn unread(i18n: Words, why: &Unread) -> String {
    match why {
        Unread::Empty => t_string!(i18n, dataset.empty).to_owned(),
        Unread::Binary => t_string!(i18n, dataset.binary).to_owned(),
        Unread::Unknown(names) => t_string!(i18n, dataset.unknown, names = names.join(", ")).to_string(),
    }
}

#[component]
fn Found(found: Arc<Dataset>, ratio: RwSignal<String>) -> impl IntoView {
    let i18n = use_i18n();
    let store = Store::get();
    let model = Simulation::get().model;
    let setup = Memo::new(move |_| store.reading().with(|r| r.setup.clone()));
    let is_estimated = found
        .samples
        .iter()
        .any(|sample| matches!(sample.text, Text::Bytes(1..)));
    let facts = {
        let found = found.clone();
        Memo::new_with_compare(
            move |_| {
                let ratio: f64 = ratio.get().trim().parse().unwrap_or(BYTES_PER_TOKEN);
                let ratio = if (0.1..=100.0).contains(&ratio) {
                    ratio
                } else {
                    BYTES_PER_TOKEN
                };
                Arc::new(facts(store, &found, model.get().as_ref(), &setup.get(), ratio))
            },
            |_, _| true,
        )
    };
    let shown = part(move || {
        let facts = facts.get();
        let view = view! {
            <Percentiles facts=facts.clone() />
            <Histogram of=facts.lengths.clone() />
            <Padding facts />
        };
        Some(view.into_any())
    });
    view! {
        <p class="muted small" data-testid="dataset-count" data-value=found.samples.len().to_string()>
            {count(i18n, &found)}
        </p>
        {is_estimated
            .then(|| {
                view! {
                    <label class="dataset-ratio small">
                        <span>{t!(i18n, dataset.ratio)}</span>
                        <input
                            type="text"
                            inputmode="decimal"
                            data-testid="dataset-ratio"
                            prop:value=move || ratio.get()
                            on:input:target=move |ev| ratio.set(ev.target().value())
                        />
                    </label>
                }
            })}
        {shown}
    }
}

/// Says how many samples there are, which cannot be read, and what is estimated.
fn count(i18n: Words, found: &Dataset) -> String {
    let samples = grouped(found.samples.len() as u64);
    let mut all = vec![t_string!(i18n, dataset.samples, samples = samples).to_string()];
    if found.broken > 0 {
        let (broken, first) = (grouped(found.broken), grouped(found.first_broken));
        all.push(t_string!(i18n, dataset.broken, broken = broken, first = first).to_string());
    }
    all.push(t_string!(i18n, dataset.private).to_owned());
    all.join(" ")
}

fn facts(store: Store, found: &Dataset, model: Option<&Model>, setup: &Setup, ratio: f64) -> Facts {
    let mut images = ImageTokens::of(model, setup);
    let length = |sample: &Sample| match sample.text {
        Text::Tokens(tokens) => tokens,
        Text::Counted(tokens) => tokens + images.of_sample(sample),
        Text::Bytes(bytes) => (bytes as f64 / ratio).ceil() as u64 + images.of_sample(sample),
    };
    let lengths = Summary::of(found.samples.iter().map(length).collect());
    let takes_sizes = model.is_some_and(|model| model.takes().parts && model.knows_image_sizes());
    let mut sizes: Vec<_> = found
        .samples
        .iter()
        .filter(|sample| !sample.sizes.is_empty() && takes_sizes)
        .collect();
    sort_by_key(&mut sizes, |sample| sample.pixels());
    let sizes: Vec<_> = sizes.into_iter().map(|sample| sample.sizes.clone()).collect();
    Facts {
        lengths,
        sizes: (!sizes.is_empty()).then_some(sizes),
        store,
        batch: setup.batch.max(1),
    }
}

/// What padding costs, and the worst micro-batch.
#[component]
fn Padding(facts: Arc<Facts>) -> impl IntoView {
    let i18n = use_i18n();
    let batch = facts.batch;
    let share = format!("{:.0}", facts.lengths.padding(batch) * 100.0);
    let worst = facts.lengths.worst(batch.min(MOST_LISTED));
    let list: Vec<String> = worst.iter().take(4).map(|length| grouped(*length)).collect();
    let list = match worst.len() {
        0..=4 => list.join(" + "),
        more => format!("{} + … ({more})", list.join(" + ")),
    };
    let text = worst.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let store = facts.store;
    let take = move |_| store.set(Setting::Lengths, text.clone());
    let is_many = batch > 1;
    view! {
        <p class="dataset-padding">
            {is_many
                .then(|| t_string!(i18n, dataset.padding, batch = batch.to_string(), share = share.clone()))}
            " "
            {t_string!(i18n, dataset.worst, lengths = list)}
        </p>
        {is_many
            .then(|| {
                view! {
                    <button type="button" class="tool" data-testid="dataset-worst" on:click=take>
                        {t!(i18n, dataset.take_worst)}
                    </button>
                }
            })}
    }
}
