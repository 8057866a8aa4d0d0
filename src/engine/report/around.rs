//! Memory that a run takes around its steps: of the card while a model is loaded, merged or gathered, and of the host.

use serde::{Deserialize, Serialize};

use super::verdict::{Fit, Room, Verdict, judge};
use crate::units::Bytes;

/// Something that happens on the card before or after the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// `from_pretrained(…).to("cuda")`.
    LoadMoved,
    /// `from_pretrained(…, device_map="cuda")`.
    LoadMapped,
    /// `from_pretrained(…, dtype=torch.float32).to("cuda").to(torch.bfloat16)`.
    LoadCast,
    /// `from_pretrained` with 4-bit weights, then `prepare_model_for_kbit_training` and `get_peft_model`.
    LoadQuantised,
    /// `from_pretrained` under DeepSpeed's `zero.Init`.
    LoadPartitioned,
    /// peft's `merge_and_unload`, in a process without optimizer.
    Merge,
    /// Whole weights that are gathered for a state dict, after a step.
    Gather,
}

impl Occasion {
    /// All of them, in the order of a run.
    pub const ALL: [Self; 7] = [
        Self::LoadMoved,
        Self::LoadMapped,
        Self::LoadCast,
        Self::LoadQuantised,
        Self::LoadPartitioned,
        Self::Merge,
        Self::Gather,
    ];

    /// Returns true for a way of loading the model.
    const fn is_of_loading(self) -> bool {
        matches!(
            self,
            Self::LoadMoved | Self::LoadMapped | Self::LoadCast | Self::LoadQuantised | Self::LoadPartitioned
        )
    }

    /// Stable name, such as `load_moved`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LoadMoved => "load_moved",
            Self::LoadMapped => "load_mapped",
            Self::LoadCast => "load_cast",
            Self::LoadQuantised => "load_quantised",
            Self::LoadPartitioned => "load_partitioned",
            Self::Merge => "merge",
            Self::Gather => "gather",
        }
    }
}

/// Memory of the card around the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnCard {
    /// Occasion on which the memory is taken.
    pub occasion: Occasion,
    /// Highest allocated bytes meanwhile.
    pub allocated: Bytes,
    /// Highest reserved bytes meanwhile.
    pub reserved: Bytes,
    /// Memory that the process takes of the host meanwhile.
    pub host: HostBytes,
}

impl OnCard {
    /// Judges the memory in the room that the run is given.
    pub fn fit(&self, room: Room<'_>, gpus: u64) -> Fit {
        Fit::of_bytes((self.allocated, self.reserved), room, gpus)
    }
}

/// Memory that a process takes of the host for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostBytes {
    /// Bytes of its own (`RssAnon`).
    pub own: Bytes,
    /// The least and the most that `own` can be.
    pub range: [Bytes; 2],
    /// Bytes of files that are mapped (`RssFile`), which the kernel may drop and read again.
    pub mapped: Bytes,
}

impl HostBytes {
    /// Bytes that are known, without files.
    pub const fn exactly(own: Bytes) -> Self {
        Self {
            own,
            range: [own, own],
            mapped: Bytes::ZERO,
        }
    }
}

/// A use of the host's memory by one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostUse {
    /// Python, its packages and the CUDA context.
    Process,
    /// Weights while they are loaded.
    Loading,
    /// Batches in pinned memory.
    Pinned,
    /// Workers of the `DataLoader`.
    Workers,
    /// Weights, gradients and states that are offloaded.
    Offloaded,
    /// Optimizer states that are paged.
    Paged,
    /// The state dict of the model while it is saved.
    SavedModel,
    /// The optimizer's states while they are saved.
    SavedStates,
}

impl HostUse {
    /// Stable name, such as `saved_model`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Loading => "loading",
            Self::Pinned => "pinned",
            Self::Workers => "workers",
            Self::Offloaded => "offloaded",
            Self::Paged => "paged",
            Self::SavedModel => "saved_model",
            Self::SavedStates => "saved_states",
        }
    }

    /// Returns true if only the first of several processes takes it.
    const fn is_of_first(self) -> bool {
        matches!(self, Self::SavedModel)
    }

    /// Stage of the run at which it is there.
    pub const fn stage(self) -> HostStage {
        match self {
            Self::Process => HostStage::Always,
            Self::Loading => HostStage::Loading,
            Self::Pinned | Self::Workers => HostStage::Training,
            Self::Offloaded | Self::Paged => HostStage::TrainingAndSaving,
            Self::SavedModel | Self::SavedStates => HostStage::Saving,
        }
    }
}

/// Stage of a run at which a use of the host's memory is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostStage {
    /// From the first to the last.
    Always,
    /// While the model is loaded.
    Loading,
    /// During the steps.
    Training,
    /// During the steps, and while a checkpoint is written.
    TrainingAndSaving,
    /// While a checkpoint is written.
    Saving,
}

impl HostStage {
    /// Times that are told apart.
    const TIMES: [Self; 3] = [Self::Loading, Self::Training, Self::Saving];

    /// Returns true if a use of this stage is there at one of the [`Self::TIMES`].
    fn is_at(self, time: Self) -> bool {
        match self {
            Self::Always => true,
            Self::TrainingAndSaving => time != Self::Loading,
            stage => stage == time,
        }
    }
}

/// One use of the host's memory by the process of one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnHost {
    /// Use of the memory.
    pub what: HostUse,
    /// Stage of the run at which it is taken.
    pub stage: HostStage,
    /// Bytes that are taken.
    #[serde(flatten)]
    pub bytes: HostBytes,
}

/// Memory around the steps of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Around {
    /// On the card.
    pub card: Vec<OnCard>,
    /// Of the host, for each process.
    pub host: Vec<OnHost>,
}

/// The host's memory that a run is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRoom {
    /// Processes on the host, one for each GPU.
    pub processes: u64,
    /// Its memory, if it is known.
    pub memory: Option<Bytes>,
}

impl Around {
    /// Bytes that the processes have of the host at the time when they have most. Files that are mapped are not part of
    /// what they need: all processes share their pages.
    pub fn host_peak(&self, processes: u64) -> HostBytes {
        let at = |time: HostStage| {
            let mut sum = HostBytes::default();
            for line in self.host.iter().filter(|line| line.stage.is_at(time)) {
                let times = if line.what.is_of_first() { 1 } else { processes };
                let of_all = |bytes: Bytes| Bytes::new(bytes.get() * times);
                sum.own += of_all(line.bytes.own);
                sum.range[0] += of_all(line.bytes.range[0]);
                sum.range[1] += of_all(line.bytes.range[1]);
                sum.mapped += line.bytes.mapped;
            }
            sum
        };
        let times = HostStage::TIMES.map(at);
        times.into_iter().max_by_key(|sum| sum.own).unwrap_or_default()
    }

    /// Judges the host's memory, if it is known: it must hold the least that the processes can take; with the most that they
    /// can, 5% should stay free.
    pub fn host_verdict(&self, room: HostRoom) -> Option<Verdict> {
        let [least, most] = self.host_peak(room.processes).range;
        Some(judge(least, most, room.memory?))
    }

    /// The loading of the model, if it reserves more than the steps do, however the model is loaded.
    pub fn loading_over(&self, steps: Bytes) -> Option<&OnCard> {
        let ways = self.card.iter().filter(|line| line.occasion.is_of_loading());
        ways.min_by_key(|line| line.reserved)
            .filter(|line| line.reserved > steps)
    }

    /// The lines with their verdicts, as documents have them, of a run whose steps reserve so much.
    pub fn judged(&self, steps: Bytes, room: Option<Room<'_>>, host: HostRoom) -> AroundDocument<'_> {
        let judge = |line| JudgedOccasion {
            line,
            verdict: room.map(|room| line.fit(room, host.processes).verdict),
        };
        AroundDocument {
            loading_over_steps: self.loading_over(steps).map(judge),
            card: self.card.iter().map(judge).collect(),
            host: HostDocument {
                uses: &self.host,
                processes: host.processes,
                needed: self.host_peak(host.processes),
                memory: host.memory,
                verdict: self.host_verdict(host),
            },
        }
    }
}

/// Memory around the steps, each line with its verdict.
#[derive(Debug, Clone, Serialize)]
pub struct AroundDocument<'a> {
    /// Loading of the model, if that takes more than the steps do.
    #[serde(skip_serializing_if = "Option::is_none")]
    loading_over_steps: Option<JudgedOccasion<'a>>,
    card: Vec<JudgedOccasion<'a>>,
    host: HostDocument<'a>,
}

#[derive(Debug, Clone, Serialize)]
struct JudgedOccasion<'a> {
    #[serde(flatten)]
    line: &'a OnCard,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

#[derive(Debug, Clone, Serialize)]
struct HostDocument<'a> {
    uses: &'a [OnHost],
    processes: u64,
    needed: HostBytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(what: HostUse, own: u64) -> OnHost {
        OnHost {
            what,
            stage: what.stage(),
            bytes: HostBytes::exactly(Bytes::new(own)),
        }
    }

    #[test]
    fn the_host_needs_what_is_there_at_the_same_time() {
        let around = Around {
            card: Vec::new(),
            host: vec![
                line(HostUse::Process, 10),
                line(HostUse::Loading, 50),
                line(HostUse::Offloaded, 30),
                line(HostUse::Pinned, 5),
                line(HostUse::SavedModel, 25),
            ],
        };
        // While it saves: 10 + 30 + 25; while it loads: 60.
        assert_eq!(around.host_peak(1).own, Bytes::new(65));
        // Two processes: 20 + 60 + 25, since one saves; while they load: 120.
        assert_eq!(around.host_peak(2).own, Bytes::new(120));
        let verdict = |memory| {
            around.host_verdict(HostRoom {
                processes: 2,
                memory: Some(Bytes::new(memory)),
            })
        };
        assert_eq!(verdict(119), Some(Verdict::Oom));
        assert_eq!(verdict(121), Some(Verdict::Tight));
        assert_eq!(verdict(140), Some(Verdict::Fits));
    }

    #[test]
    fn names_are_those_of_the_documents() {
        for occasion in Occasion::ALL {
            let written = serde_json::to_value(occasion).expect("a word");
            assert_eq!(written, occasion.name());
        }
    }
}
