//! Work that the host runs from lazily loaded chunks, because the first view of a page does not need it.

use vramscope_engine::model::LazyGroup;
use vramscope_engine::report::derivation::{Derivation, Quantity};

use super::attention::AttentionWork;
use super::batches::BatchWork;
use super::coded::Coded;
use super::costs::Coster;
#[cfg(not(target_arch = "wasm32"))]
use super::costs::costs;
use super::difference::Compare;
#[cfg(not(target_arch = "wasm32"))]
use super::difference::difference;
use super::launch::LaunchReader;
use super::plans::PlanWork;
use super::played::Replayer;
use super::protocol::{Answer, Ask};
use super::run::{Subject, model};
use super::several::Several;
use super::slices::{Kept, Parts};
use super::sweep::SweepWork;
use crate::state::{Draft, Reading, Source};

/// Starts sliced work on a set of entries.
pub type Begin = fn(&Draft) -> Box<dyn Parts>;
/// Starts a search for setups, timed by the kernels of the user's card if one is selected.
pub type Planner = fn(&Draft, Option<&str>) -> Box<dyn Parts>;
/// Answers a question about a kept run.
pub type AnswerKept = fn(&Kept, &Ask) -> Option<Answer>;
/// Starts answering a question that needs a run's time, if that run is still kept.
pub type Timer = fn(Option<&Kept>, &Ask) -> Box<dyn Parts>;

/// Starts the curves of the attention page.
pub fn attention(entries: &Draft) -> Box<dyn Parts> {
    Box::new(AttentionWork::of(entries))
}

/// Starts a sweep.
pub fn sweep(entries: &Draft) -> Box<dyn Parts> {
    Box::new(SweepWork::of(entries))
}

/// Starts a search for the largest micro-batch.
pub fn batches(entries: &Draft) -> Box<dyn Parts> {
    Box::new(BatchWork::of(entries))
}

/// Starts a search for setups that train, timed by the kernels of the user's card if one is selected.
pub fn plan(entries: &Draft, card: Option<&str>) -> Box<dyn Parts> {
    Box::new(PlanWork::of(entries, card))
}

/// Derives a number of a run, or exports the run as a table.
pub fn derive_or_export(kept: &Kept, ask: &Ask) -> Option<Answer> {
    match ask {
        Ask::Export { file, .. } => {
            let table = file.table(&kept.ran.report)?;
            Some(Answer::File(table))
        }
        Ask::Derive { quantity, changed, .. } => {
            let quantity = quantity.open()?;
            let subject = kept.subject.as_ref()?;
            let now = subject.explained(&kept.ran.report, kept.card.as_ref());
            let found = match changed {
                None if counts_weights(&quantity) && subject.holds_shards() => whole(subject, &quantity)?,
                None => now.derivation(&quantity)?,
                Some(entries) => {
                    let subject = Subject::read(entries).ok()?;
                    let ran = subject.run().ok()?;
                    let card = subject.card(&ran.report).ok();
                    let changed = subject.explained(&ran.report, card.as_ref());
                    now.derivation_beside(changed, &quantity)?
                }
            };
            Some(Answer::Derivation(Coded::of(&found)))
        }
        _ => None,
    }
}

/// Derives a count of the whole model's weights, of which one of several GPUs holds shards: from the same setup on one.
fn whole(subject: &Subject, quantity: &Quantity) -> Option<Derivation> {
    let alone = subject.alone();
    let ran = alone.run().ok()?;
    alone.explained(&ran.report, None).derivation(quantity)
}

const fn counts_weights(quantity: &Quantity) -> bool {
    use Quantity as Q;
    matches!(
        quantity,
        Q::Params | Q::PartParams(_) | Q::Trainable | Q::PartTrainable(_)
    )
}

/// Fetches a chunk and adds it to the loaded ones; `None` if it could not be fetched.
#[cfg(target_arch = "wasm32")]
pub type Loader = fn(Need, LoadedChunks) -> std::pin::Pin<Box<dyn Future<Output = Option<LoadedChunks>>>>;

#[cfg(target_arch = "wasm32")]
static LOADER: std::sync::OnceLock<Loader> = std::sync::OnceLock::new();

/// Sets what fetches the chunks. Later calls change nothing.
#[cfg(target_arch = "wasm32")]
pub fn install(loader: Loader) {
    LOADER.set(loader).ok();
}

/// Fetches a chunk with the loader that `main` installed.
#[cfg(target_arch = "wasm32")]
pub async fn fetch(need: Need, chunks: LoadedChunks) -> Option<LoadedChunks> {
    (LOADER.get()?)(need, chunks).await
}

/// A chunk that the host can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Chunk of [`attention`].
    Attention,
    /// Chunk of [`sweep`].
    Sweep,
    /// Chunk of [`batches`].
    Batches,
    /// Chunk of [`plan`].
    Plan,
    /// Chunk of [`costs`](super::costs::costs).
    Cost,
    /// Chunk of [`derive_or_export`].
    DeriveOrExport,
    /// Chunk of [`around::answer`](super::around::answer).
    Around,
    /// Chunk of [`time::begin`](super::time::begin).
    Timer,
    /// Code of a group of models outside the first download.
    Models(LazyGroup),
    /// Chunk of [`Several`].
    Several,
    /// Chunk of [`difference`](super::difference::difference).
    Difference,
    /// Chunk of [`LaunchReader`].
    Launch,
    /// Chunk of [`Replayer`].
    Replayer,
    /// Not a chunk: the recording that a question is about, which is unpacked first (`Pump::unpack`).
    UnpackedRecording,
}

impl Need {
    /// Returns the chunk that a question needs and that is not loaded. `Ask::Run` checks what its model needs later by
    /// itself, so that it is read only once.
    pub fn of(ask: &Ask, chunks: LoadedChunks) -> Option<Self> {
        let own = match ask {
            Ask::Attention(_) => Some(Self::Attention),
            Ask::Sweep(_) => Some(Self::Sweep),
            Ask::Batches(_) => Some(Self::Batches),
            Ask::Plan { .. } => Some(Self::Plan),
            Ask::Cost { .. } => Some(Self::Cost),
            Ask::Around { .. } => Some(Self::Around),
            ask if ask.is_timed() => Some(Self::Timer),
            Ask::Export { .. } | Ask::Derive { .. } => Some(Self::DeriveOrExport),
            Ask::Recorded { .. } => Some(Self::Replayer),
            Ask::Strategies(_) | Ask::Numbers(_) => Some(Self::Several),
            Ask::Difference(_) => Some(Self::Difference),
            Ask::Launch(_) => Some(Self::Launch),
            _ => None,
        };
        let runs = match ask {
            Ask::Attention(entries)
            | Ask::Sweep(entries)
            | Ask::Batches(entries)
            | Ask::Plan { entries, .. }
            | Ask::Cost { entries, .. }
            | Ask::Strategies(entries)
            | Ask::Numbers(entries)
            | Ask::WhatIf { entries, .. }
            | Ask::Derive {
                changed: Some(entries), ..
            } => std::slice::from_ref(entries),
            Ask::Setups(all) | Ask::Prefetch(all) => all,
            Ask::Difference(both) => &both[..],
            _ => &[],
        };
        own.filter(|need| !chunks.has(*need))
            .or_else(|| runs.iter().find_map(|entries| Self::to_run(entries, chunks)))
    }

    /// Chunk that reading the entries' model needs and that is not loaded.
    pub fn to_read(source: &Source, chunks: LoadedChunks) -> Option<Self> {
        let group = match source {
            Source::Catalogue(name) => LazyGroup::of_name(name),
            Source::Config(text) => LazyGroup::of_config(text),
        };
        Self::models(group, chunks)
    }

    /// Chunk that running the entries' model needs and that is not loaded.
    fn to_run(entries: &Draft, chunks: LoadedChunks) -> Option<Self> {
        let reading = Reading::of(entries, &Draft::default());
        Self::to_read(&reading.source, chunks)
            .or_else(|| Self::to_share(&reading, chunks))
            .or_else(|| Self::models(model(&reading).ok()?.lazy_group(), chunks))
    }

    /// Chunk that running one of several GPUs needs and that is not loaded.
    pub fn to_share(reading: &Reading, chunks: LoadedChunks) -> Option<Self> {
        (reading.parallel.is_some() && !chunks.has(Self::Several)).then_some(Self::Several)
    }

    /// Chunk of a group of models, if it is not loaded.
    pub fn models(group: Option<LazyGroup>, chunks: LoadedChunks) -> Option<Self> {
        group.map(Self::Models).filter(|need| !chunks.has(*need))
    }
}

/// Chunks that are loaded.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadedChunks {
    /// [`attention`], once its chunk is loaded.
    pub attention: Option<Begin>,
    /// [`sweep`], once its chunk is loaded.
    pub sweep: Option<Begin>,
    /// [`batches`], once its chunk is loaded.
    pub batches: Option<Begin>,
    /// [`plan`], once its chunk is loaded.
    pub plan: Option<Planner>,
    /// [`costs`](super::costs::costs), once its chunk is loaded.
    pub cost: Option<Coster>,
    /// [`derive_or_export`], once its chunk is loaded.
    pub derive_or_export: Option<AnswerKept>,
    /// [`around::answer`](super::around::answer), once its chunk is loaded.
    pub around: Option<AnswerKept>,
    /// [`time::begin`](super::time::begin), once its chunk is loaded.
    pub timer: Option<Timer>,
    /// [`Several`], once its chunk is loaded.
    pub several: Option<Several>,
    /// [`difference`](super::difference::difference), once its chunk is loaded.
    pub difference: Option<Compare>,
    /// [`LaunchReader`], once its chunk is loaded.
    pub launch: Option<LaunchReader>,
    /// True for each group of models whose code is loaded, in the order of [`LazyGroup::ALL`].
    pub models: [bool; LazyGroup::ALL.len()],
    /// [`Replayer`], once its chunk is loaded.
    pub replayer: Option<Replayer>,
}

impl LoadedChunks {
    /// Returns all chunks; native builds load nothing lazily.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn all() -> Self {
        Self {
            attention: Some(attention),
            sweep: Some(sweep),
            batches: Some(batches),
            plan: Some(plan),
            cost: Some(costs),
            derive_or_export: Some(derive_or_export),
            around: Some(super::around::answer),
            timer: Some(super::time::begin),
            several: Some(Several::own()),
            difference: Some(difference),
            launch: Some(LaunchReader::own()),
            models: [true; LazyGroup::ALL.len()],
            replayer: Some(super::played::replayer()),
        }
    }

    /// Notes that a group of models is loaded.
    pub const fn add_models(&mut self, group: LazyGroup) {
        self.models[group as usize] = true;
    }

    /// Returns true if the chunk is loaded.
    pub const fn has(&self, need: Need) -> bool {
        match need {
            Need::Attention => self.attention.is_some(),
            Need::Sweep => self.sweep.is_some(),
            Need::Batches => self.batches.is_some(),
            Need::Plan => self.plan.is_some(),
            Need::Cost => self.cost.is_some(),
            Need::DeriveOrExport => self.derive_or_export.is_some(),
            Need::Around => self.around.is_some(),
            Need::Timer => self.timer.is_some(),
            Need::Several => self.several.is_some(),
            Need::Difference => self.difference.is_some(),
            Need::Launch => self.launch.is_some(),
            Need::Models(group) => self.models[group as usize],
            Need::Replayer => self.replayer.is_some(),
            Need::UnpackedRecording => false,
        }
    }
}
