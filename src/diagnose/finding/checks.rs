//! Ticks the items of the course's checklists (rows 9.diagnose, 9.lists, 11.lists) that evidence and setup can answer.

use serde::{Deserialize, Serialize};

use super::words::{Sentence, sentence, title};
use super::{Cause, Confidence, Finding};
use crate::snapshot::Category;
use crate::{Evidence, Piece};
use vramscope_engine::Setup;
use vramscope_engine::format::gib;
use vramscope_engine::setup::{Attention, Checkpointing, Freeze, Optimizer, Precision};

/// A checklist item that the evidence answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Row, list and index of the item: `9.diagnose/five/0`.
    pub item: &'static str,
    /// True if the item is done: a question is answered, or a rule is kept.
    pub is_done: bool,
    /// The answer that the evidence gives.
    pub said: Sentence,
}

/// Returns every item that is answered. Items that only a person can answer are never ticked.
pub fn checks(pieces: &[Piece], findings: &[Finding], setup: Option<&Setup>) -> Vec<Check> {
    let case = Case {
        pieces,
        findings,
        setup,
    };
    let mut out = Vec::new();
    let mut tick = |items: &[&'static str], said: Tick| {
        if let Some((is_done, said)) = said {
            out.extend(items.iter().map(|item| Check {
                item,
                is_done,
                said: said.clone(),
            }));
        }
    };
    tick(&["9.diagnose/five/0", "9.lists/seconds/0"], case.others());
    tick(&["9.diagnose/five/1", "9.lists/seconds/1"], case.counters());
    tick(
        &["9.diagnose/five/2", "9.lists/seconds/2", "9.lists/before/2"],
        case.sizes(),
    );
    tick(&["9.diagnose/five/3"], case.optimizer());
    tick(&["9.diagnose/five/4"], case.precision());
    tick(&["9.lists/during/0"], case.logged());
    tick(&["9.lists/during/2"], case.steady());
    tick(&["9.lists/before/1"], case.phase());
    tick(&["9.lists/minutes/0"], case.place());
    tick(&["9.lists/minutes/1"], case.message());
    tick(&["9.lists/minutes/2"], case.setup.map(|_| done("k_setup", [])));
    for (item, kept) in FIXES.iter().zip(case.kept()) {
        tick(&[item], kept.then(|| done("k_has_it", [])));
    }
    tick(
        &["11.lists/before/1"],
        case.profiled(|cause| {
            matches!(
                cause,
                Cause::DataLoading { .. } | Cause::Communication { .. } | Cause::Idle { .. } | Cause::Copies { .. }
            )
        }),
    );
    tick(
        &["11.lists/decisions/1"],
        case.profiled(|cause| matches!(cause, Cause::Communication { .. })),
    );
    tick(
        &["11.lists/decisions/2"],
        case.profiled(|cause| matches!(cause, Cause::DataLoading { .. })),
    );
    out
}

/// Identifiers of the fixes in row 9.lists, in its order.
const FIXES: [&str; 6] = [
    "9.lists/fixes/0",
    "9.lists/fixes/1",
    "9.lists/fixes/2",
    "9.lists/fixes/3",
    "9.lists/fixes/4",
    "9.lists/fixes/5",
];

struct Case<'a> {
    pieces: &'a [Piece],
    findings: &'a [Finding],
    setup: Option<&'a Setup>,
}

/// True if an item is done, with the answer; `None` if the evidence does not say.
type Tick = Option<(bool, Sentence)>;

fn done<const N: usize>(key: &str, gaps: [String; N]) -> (bool, Sentence) {
    (true, sentence(key, gaps))
}

impl Case<'_> {
    fn any(&self, of: impl Fn(&Evidence) -> bool) -> bool {
        self.pieces.iter().any(|piece| of(&piece.evidence))
    }

    /// The title of the first finding whose cause matches, which answers the question.
    fn title_of(&self, of: impl Fn(&Cause) -> bool) -> Tick {
        let finding = self.findings.iter().find(|finding| of(&finding.cause))?;
        Some((true, title(&finding.cause, finding.confidence)))
    }

    fn others(&self) -> Tick {
        let is_shown = self.any(|evidence| match evidence {
            Evidence::Oom(message) => !message.others.is_empty() || message.own.is_some(),
            Evidence::Smi(smi) => !smi.processes.is_empty(),
            _ => false,
        });
        self.title_of(|cause| matches!(cause, Cause::OtherProcesses { .. }))
            .or_else(|| is_shown.then(|| done("k_no_others", [])))
    }

    fn counters(&self) -> Tick {
        self.title_of(|cause| matches!(cause, Cause::Fragmentation { .. }))
    }

    fn sizes(&self) -> Tick {
        let long = self.title_of(|cause| matches!(cause, Cause::LongSample { .. }));
        long.or_else(|| {
            let setup = self.setup?;
            let (batch, seq) = (setup.batch.to_string(), setup.seq.to_string());
            Some(done("k_sizes", [batch, seq]))
        })
    }

    fn optimizer(&self) -> Tick {
        let recorded = self.pieces.iter().find_map(|piece| match &piece.evidence {
            Evidence::Snapshot(summary) => {
                let states = summary.at_peak.iter().find(|(of, _)| *of == Category::OptimizerState)?;
                (states.1.get() > 0).then(|| done("k_states", [gib(states.1)]))
            }
            _ => None,
        });
        recorded.or_else(|| {
            let setup = self.setup?;
            Some(done("k_optimizer", [setup.optim.name().to_owned()]))
        })
    }

    fn precision(&self) -> Tick {
        let setup = self.setup?;
        Some(done("k_precision", [setup.precision.name().to_owned()]))
    }

    fn logged(&self) -> Tick {
        let readings = self.pieces.iter().find_map(|piece| match &piece.evidence {
            Evidence::Log(log) => log.series.first().map(|series| series.points.len()),
            _ => None,
        })?;
        Some(done("k_logged", [readings.to_string()]))
    }

    /// The rule that memory does not grow: kept only if no finding shows growth.
    fn steady(&self) -> Tick {
        let growth = |finding: &&Finding| matches!(finding.cause, Cause::Leak(_) | Cause::NoLeak { .. });
        let finding = self.findings.iter().find(growth)?;
        let is_kept = finding.confidence == Confidence::RuledOut;
        Some((is_kept, title(&finding.cause, finding.confidence)))
    }

    fn phase(&self) -> Tick {
        self.title_of(|cause| matches!(cause, Cause::Peak { .. }))
            .or_else(|| self.place())
    }

    /// Where the run failed, as the first finding that knows it says.
    fn place(&self) -> Tick {
        let is_place = |finding: &&Finding| {
            matches!(finding.cause, Cause::Site(_)) || finding.speaks_for.iter().any(|fact| fact.starts_with("phase="))
        };
        let finding = self.findings.iter().find(is_place)?;
        Some((true, title(&finding.cause, finding.confidence)))
    }

    fn message(&self) -> Tick {
        self.any(|evidence| matches!(evidence, Evidence::Oom(_)))
            .then(|| done("k_message", []))
    }

    /// The profile's answer. A profile without a matching finding also answers the question.
    fn profiled(&self, of: impl Fn(&Cause) -> bool) -> Tick {
        let is_there = self.any(|evidence| matches!(evidence, Evidence::Profile(_)));
        let tick = self.title_of(of);
        tick.or_else(|| is_there.then(|| done("k_not_seen", [])))
    }

    /// For each fix, true if the setup already has it.
    fn kept(&self) -> [bool; 6] {
        let Some(setup) = self.setup else { return [false; 6] };
        [
            setup.batch == 1,
            setup.attn != Attention::Eager,
            matches!(setup.ckpt, Checkpointing::Full | Checkpointing::Language),
            setup.precision != Precision::Fp32,
            !matches!(setup.optim, Optimizer::Adamw | Optimizer::AdamwLoop),
            matches!(setup.freeze, Freeze::Lora | Freeze::Qlora),
        ]
    }
}
