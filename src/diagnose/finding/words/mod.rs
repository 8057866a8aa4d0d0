//! Phrases for findings. A [`Sentence`] is a phrase key and the values for its gaps, so that every frontend can phrase it
//! in its own language; [`Phrases`] are those of one language.

mod evidence;
mod steps;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vramscope_phrases::fill;

pub use evidence::evidence;
pub use steps::step;

use super::{Cause, Confidence};
use crate::oom::{Asker, Backend, Site};
use crate::snapshot::Category;
use vramscope_engine::format::gib;

/// One sentence: the key of its phrase, and the values for the gaps `a`, `b`, `c`, …
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// Key of the phrase.
    pub key: String,
    /// Values for the gaps.
    pub gaps: Vec<Gap>,
}

/// Value of a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gap {
    /// Text that needs no translation: amounts, numbers, names.
    Text(String),
    /// Key of another phrase.
    Phrase(String),
}

impl From<String> for Gap {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Category> for Gap {
    fn from(category: Category) -> Self {
        Self::Phrase(
            match category {
                Category::Weight => "c_weight",
                Category::Gradient => "c_gradient",
                Category::OptimizerState => "c_optimizer_state",
                Category::Activation => "c_activation",
                Category::Temporary => "c_temporary",
                Category::Other => "c_other",
                Category::Before => "c_before",
            }
            .into(),
        )
    }
}

fn of_kinds(language: &str) -> impl Iterator<Item = (String, String)> {
    crate::kind::phrases(language).map(|(key, text)| (key, text.to_owned()))
}

/// A phrase with its gaps, some of which may be phrases themselves.
fn sentence_with(key: &str, gaps: impl IntoIterator<Item = Gap>) -> Sentence {
    Sentence {
        key: key.into(),
        gaps: gaps.into_iter().collect(),
    }
}

/// A phrase whose gaps need no translation.
pub(super) fn sentence<const N: usize>(key: &str, gaps: [String; N]) -> Sentence {
    sentence_with(key, gaps.map(Gap::Text))
}

/// A finding in one sentence. Causes that are ruled out have a sentence that denies them.
pub fn title(cause: &Cause, confidence: Confidence) -> Sentence {
    let is_ruled_out = confidence == Confidence::RuledOut;
    let key = match cause {
        Cause::Known { title, .. } => return title.clone(),
        Cause::OutOfCapacity { .. } => "t_out_of_capacity",
        Cause::OtherProcesses { .. } => "t_other_processes",
        Cause::Fragmentation { .. } if is_ruled_out => "t_not_fragmentation",
        Cause::Fragmentation { .. } => "t_fragmentation",
        Cause::Limit { is_mps: true, .. } => "t_limit_mps",
        Cause::Limit { .. } => "t_limit",
        Cause::RefusedThoughFree { .. } => "t_refused_though_free",
        Cause::OutsideTheCache { asker } => return sentence("t_outside_the_cache", [asker_name(*asker).into()]),
        Cause::HostMemory { .. } => "t_host_memory",
        Cause::NoNumbers => "t_no_numbers",
        Cause::PrivatePools { .. } => "t_private_pools",
        Cause::Site(site) => site_title(*site),
        Cause::AttentionMatrix { .. } => "t_attention_matrix",
        Cause::Logits { .. } => "t_logits",
        Cause::Tensors { .. } => "t_tensors",
        Cause::Retries { .. } => "t_retries",
        Cause::NearlyFull { .. } => "t_nearly_full",
        Cause::Utilization { mean, .. } => band(*mean),
        Cause::Leak(growth) if growth.is_accelerating => "t_leak_faster",
        Cause::Leak(_) => "t_leak",
        Cause::NoLeak { .. } => "t_no_leak",
        Cause::LongSample { .. } => "t_long_sample",
        Cause::DataLoading { .. } => "t_data_loading",
        Cause::Communication { .. } => "t_communication",
        Cause::Copies { .. } => "t_copies",
        Cause::Idle { busy } if *busy < 0.85 => "t_idle",
        Cause::Idle { .. } => "t_busy",
        Cause::AttentionTime { .. } => "t_attention_time",
        Cause::HotSpots { .. } => "t_hot_spots",
        Cause::Peak { by_category, .. } => match by_category.first() {
            Some((category, _)) => return sentence_with("t_peak", [Gap::from(*category)]),
            None => "t_nothing_live",
        },
        Cause::NeverFreed { .. } => "t_never_freed",
        Cause::ExpandableSegments { serves: Some(true), .. } => "t_expandable_saves",
        Cause::ExpandableSegments { .. } if is_ruled_out => "t_expandable_no",
        Cause::ExpandableSegments { .. } => "t_expandable",
        Cause::Unforeseen { .. } if confidence == Confidence::Likely => "t_unforeseen",
        Cause::Unforeseen { .. } => "t_simulated",
    };
    sentence(key, [])
}

/// Phrase key for a utilization band of course row 11.bands.
fn band(mean: f64) -> &'static str {
    match mean {
        mean if mean > 0.95 => "t_use_excellent",
        mean if mean >= 0.85 => "t_use_good",
        mean if mean >= 0.7 => "t_use_fair",
        _ => "t_use_low",
    }
}

fn asker_name(asker: Asker) -> &'static str {
    match asker {
        Asker::Cublas => "cuBLAS",
        Asker::Cudnn => "cuDNN",
        Asker::Nccl => "NCCL",
        Asker::Driver(_) | Asker::Host => "CUDA",
        Asker::Allocator(Backend::Cuda | Backend::Hip | Backend::Xpu | Backend::Mps) => "PyTorch",
    }
}

const fn site_title(site: Site) -> &'static str {
    match site {
        Site::Load => "t_site_load",
        Site::Vision => "t_site_vision",
        Site::Attention => "t_site_attention",
        Site::Loss => "t_site_loss",
        Site::Forward => "t_site_forward",
        Site::Backward => "t_site_backward",
        Site::OptimizerStates => "t_site_states",
        Site::Optimizer => "t_site_optimizer",
    }
}

/// A share as a percentage; small shares keep two decimals, since they matter.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 10.0 {
        format!("{percent:.2}%")
    } else {
        format!("{percent:.1}%")
    }
}

/// Bytes in the most readable unit, formatted as PyTorch prints them.
pub(super) fn bytes(bytes: vramscope_engine::units::Bytes) -> String {
    if bytes.get() >= 1 << 30 {
        gib(bytes)
    } else {
        bytes.to_string()
    }
}

/// The phrases of findings in one language, by key.
#[derive(Debug, Clone, Default)]
pub struct Phrases(BTreeMap<String, String>);

impl Phrases {
    /// Parses a JSON object of texts; `None` if it is something else.
    pub fn read(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    /// Parses the English phrases; call it once and keep the result.
    ///
    /// # Panics
    /// Never: tests parse the same file.
    pub fn english() -> Self {
        let mut phrases = Self::read(include_str!("en.json")).expect("it is a table of texts");
        phrases.0.extend(of_kinds("en"));
        phrases
    }

    /// The phrases as a JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// The same with those of the kinds of evidence in a language; English ones where it has none.
    pub fn with_kinds(mut self, language: &str) -> Self {
        self.0.extend(of_kinds(language));
        self
    }

    /// Returns true if no phrases are loaded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a phrase; the key itself if there is no such phrase.
    pub fn get<'a>(&'a self, key: &'a str) -> &'a str {
        self.0.get(key).map_or(key, String::as_str)
    }

    /// Returns the phrase with its gaps filled.
    pub fn text_of(&self, sentence: &Sentence) -> String {
        let values = sentence.gaps.iter().map(|gap| match gap {
            Gap::Text(text) => text.as_str(),
            Gap::Phrase(key) => self.get(key),
        });
        fill(self.get(&sentence.key), &values.collect::<Vec<_>>())
    }
}
