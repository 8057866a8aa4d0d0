//! Warnings about a run, each with the next step to take.

mod class_defaults;
mod vllm;

use crate::model::Stored;
use crate::report::compiled::{self, MEASURED, Measured};
use crate::report::{Held, Live, Phase, Report, Severity, Warning};
use crate::setup::{Attention, Checkpointing, Loss, Optimizer, Parallel, Precision};
use crate::tape::{Component, Kind, Why};
use crate::units::Bytes;
use crate::{Model, Setup};

/// Warnings of one run.
pub(super) fn warnings(model: &Model, setup: &Setup, report: &Report) -> Vec<Warning> {
    let run = WarningInputs {
        model,
        setup,
        report,
        live: report.timeline.live(report.timeline.peak_instant()),
    };
    [
        class_defaults::of(model),
        run.compiled(),
        vllm::of(run.setup),
        run.generic(),
        run.absent_packages(),
        run.unrecorded_package(),
        run.dequantised(),
        run.partial_sums(),
        run.beyond_rotary_positions(),
        run.optimizer_holds_the_peak(),
        logits(&run.live, report, run.can_fuse_its_loss()),
        run.attention_matrices(),
        run.autocast_copies(),
        run.names_match_nothing(),
        run.frozen_is_not_free(),
        run.frozen_tower_keeps_a_graph(),
        run.paged_states(),
        fragmentation(report),
        first_step(report),
        run.scaler_skips(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Warnings that follow from a report alone, regardless of the setup.
pub fn of_report(report: &Report) -> Vec<Warning> {
    let live = report.timeline.live(report.timeline.peak_instant());
    [logits(&live, report, true), fragmentation(report), first_step(report)]
        .into_iter()
        .flatten()
        .collect()
}

/// Names the pipeline stage that is shown, if the setup names none.
pub(super) fn stages(stages: &[(u64, Bytes)]) -> Option<Warning> {
    let (most, others) = stages.split_first()?;
    let words = |(stage, bytes): &(u64, Bytes)| format!("stage {stage}: {bytes}");
    let others: Vec<String> = others.iter().map(words).collect();
    let (most, others) = (words(most), others.join(", "));
    Some(Warning {
        code: "stages".into(),
        severity: Severity::Note,
        message: format!(
            "Of the pipeline's GPUs, the one that holds the most is shown ({most}; {others}; any other holds no more). \
             Name a stage to see another."
        ),
        args: vec![("most".into(), most), ("others".into(), others)],
    })
}

/// FSDP1 lends tensors to other streams (`record_stream`), and the allocator takes their memory back only once the GPU has passed
/// them, which depends on its pace. The runs are those of `tests/data/shared_vs_predicted.md`.
pub(super) fn streams(parallel: &Parallel) -> Option<Warning> {
    parallel.strategy.is_fsdp1().then(|| Warning {
        code: "streams".into(),
        severity: Severity::Warning,
        message: "FSDP1 uses tensors on several streams, and PyTorch gets their memory back only once the GPU has passed them: \
                  eight of 13 runs on two H200 reserved 3% to 29% more than these figures say. Leave as much free, or take \
                  FSDP2, which has no such delay."
            .into(),
        args: Vec::new(),
    })
}

struct WarningInputs<'a> {
    model: &'a Model,
    setup: &'a Setup,
    report: &'a Report,
    /// At the steady peak.
    live: Live<'a>,
}

impl WarningInputs<'_> {
    /// Returns true if the same run is simulated with a fused loss, which is advised then.
    fn can_fuse_its_loss(&self) -> bool {
        let setup = Setup {
            loss: Loss::FusedLinear,
            ..self.setup.clone()
        };
        super::check::check(self.model, &setup).is_ok()
    }

    fn sum(&self, of: impl Fn(&Held<'_>) -> bool) -> Bytes {
        self.live.sum(of)
    }

    /// Returns true if the bytes are at least a fifth of the peak, and so worth looking at first.
    fn is_a_fifth(&self, bytes: Bytes) -> bool {
        is_a_fifth(bytes, self.report)
    }

    /// Tells that figures are eager's, and what compiled steps took where they were measured.
    fn compiled(&self) -> Option<Warning> {
        let Measured {
            steps,
            families,
            allocated,
            usual,
            ..
        } = MEASURED;
        let eager = self.report.peak_allocated;
        let [low, high] = allocated.map(|share| compiled::share(eager, share));
        let percent =
            |[low, high]: [u64; 2]| [low, high].map(|share| format!("{:+.0}%", (share as f64 - 1000.0) / 10.0));
        let ([least, most], [usual_least, usual_most]) = (percent(allocated), percent(usual));
        self.report.is_compiled.then(|| Warning {
            code: "compiled".into(),
            severity: Severity::Warning,
            message: format!(
                "`compile` is on, and what Inductor fuses, keeps and recomputes is not simulated: every figure is that of \
                 the same step in eager mode, {eager} at its peak. {steps} compiled steps of {families} families, measured on \
                 an H100 with PyTorch 2.11, took {least} to {most} beside eager ones, nine in ten {usual_least} to \
                 {usual_most}: here that is {low} to {high}. It is no bound: measure yours, or leave `compile` out for \
                 figures that hold."
            ),
            args: vec![
                ("eager".into(), eager.to_string()),
                ("steps".into(), steps.to_string()),
                ("families".into(), families.to_string()),
                ("least".into(), least),
                ("most".into(), most),
                ("usual_least".into(), usual_least),
                ("usual_most".into(), usual_most),
                ("low".into(), low.to_string()),
                ("high".into(), high.to_string()),
            ],
        })
    }

    fn generic(&self) -> Option<Warning> {
        self.model.generic.then(|| Warning {
            code: "generic-decoder".into(),
            severity: Severity::Warning,
            message: format!(
                "{} is simulated with the forward of a Llama: parameters, gradients and optimizer states are exact, while \
                 its own forward makes tensors beside these, such as scaled or rotated copies, that the figures \
                 leave out.",
                self.model.name
            ),
            args: vec![("model".into(), self.model.name.clone())],
        })
    }

    /// Tells which packages are taken to be absent.
    fn absent_packages(&self) -> Option<Warning> {
        let installed = self.setup.packages.packages();
        let absent = self.model.absent_packages().iter().copied();
        let packages: Vec<&str> = absent.filter(|package| !installed.contains(package)).collect();
        (!packages.is_empty()).then(|| Warning {
            code: "absent-packages".into(),
            severity: Severity::Note,
            message: format!(
                "{} is simulated as transformers runs it where {} is not installed. An installed one replaces a part of \
                 the forward by its own kernels, which keep and allocate other tensors.",
                self.model.name,
                packages.join(" or ")
            ),
            args: vec![
                ("model".into(), self.model.name.clone()),
                ("packages".into(), packages.join(", ")),
            ],
        })
    }

    /// Tells which installed package is simulated from its source alone.
    fn unrecorded_package(&self) -> Option<Warning> {
        let installed = self.setup.packages.packages();
        let mut present = self
            .model
            .absent_packages()
            .iter()
            .filter(|package| installed.contains(package));
        let package = (*present.next()?).to_owned();
        Some(Warning {
            code: "unrecorded-package".into(),
            severity: Severity::Note,
            message: format!(
                "Convolutions of {} run by {package}, simulated from its source: no run of it has been recorded.",
                self.model.name
            ),
            args: vec![("model".into(), self.model.name.clone()), ("package".into(), package)],
        })
    }

    /// Tells that weights are larger in memory than in their files.
    fn dequantised(&self) -> Option<Warning> {
        (self.model.stored == Stored::Mxfp4).then(|| Warning {
            code: "dequantised".into(),
            severity: Severity::Note,
            message: format!(
                "The files of {} hold experts in MXFP4. They are simulated in bf16: where the package `kernels` is not \
                 installed, transformers dequantises them when it loads them, and where it is, it does not train them \
                 unless `Mxfp4Config(dequantize=True)` is given.",
                self.model.name
            ),
            args: vec![("model".into(), self.model.name.clone())],
        })
    }

    /// Tells what is left out of the memory that convolutions take inside.
    fn partial_sums(&self) -> Option<Warning> {
        self.model.lacks_partial_sums().then(|| Warning {
            code: "partial-sums".into(),
            severity: Severity::Note,
            message: format!(
                "cuDNN's kernels for the convolutions of {} copy input, weight and output, which is counted. Those that it \
                 splits keep partial sums beside these, up to 17 MiB where they were measured, which is not; for few \
                 channels and single pixels some copy less. cuDNN decides for each size and batch.",
                self.model.name
            ),
            args: vec![("model".into(), self.model.name.clone())],
        })
    }

    /// Warns of rotary positions beyond those that a model was trained for, which run but were never trained.
    fn beyond_rotary_positions(&self) -> Option<Warning> {
        let made_for = self.model.rotary_positions()?;
        let seq = self.model.prepared(self.setup).longest();
        (seq > made_for).then(|| Warning {
            code: "beyond-rotary".into(),
            severity: Severity::Warning,
            message: format!(
                "The model was made for {made_for} positions (max_position_embeddings), and {seq} are asked for: it runs, \
                 but what it learned does not cover the rest. Shorten the sequence or scale the rotary embedding."
            ),
            args: vec![
                ("positions".into(), made_for.to_string()),
                ("seq".into(), seq.to_string()),
            ],
        })
    }

    fn optimizer_holds_the_peak(&self) -> Option<Warning> {
        let unfused = matches!(self.setup.optim, Optimizer::Adamw | Optimizer::AdamwLoop);
        (self.report.peak_phase == Phase::Optimizer && unfused).then(|| {
            let temporaries = self.sum(|t| t.kind() == Kind::Temporary);
            let others = self.report.steady.peak_forward.max(self.report.steady.peak_backward);
            Warning {
                code: "optimizer-holds-peak".into(),
                severity: Severity::Warning,
                message: format!(
                    "The optimizer step holds the peak: its temporaries take {temporaries}. A smaller batch or \
                     checkpointing saves nothing until that is gone. Use the fused AdamW: forward and backward peak at \
                     {others}."
                ),
                args: vec![
                    ("temporaries".into(), temporaries.to_string()),
                    ("others".into(), others.to_string()),
                ],
            }
        })
    }

    fn attention_matrices(&self) -> Option<Warning> {
        if self.setup.attn != Attention::Eager {
            return None;
        }
        let square = |shape: &[u64]| matches!(shape, [_, .., rows, columns] if rows == columns);
        let bytes = self.sum(|t| matches!(t.kind(), Kind::Activation | Kind::Temporary) && square(&t.allocation.shape));
        self.is_a_fifth(bytes).then(|| Warning {
            code: "attention-matrices".into(),
            severity: Severity::Warning,
            message: format!(
                "Attention matrices hold {bytes} at the peak, and grow with the square of the sequence. Use `sdpa`: it \
                 never makes them."
            ),
            args: vec![("bytes".into(), bytes.to_string())],
        })
    }

    fn autocast_copies(&self) -> Option<Warning> {
        if !matches!(self.setup.precision, Precision::AmpBf16 | Precision::AmpFp16) {
            return None;
        }
        let bytes = self.sum(|t| t.allocation.why == Why::AutocastCopy);
        self.is_a_fifth(bytes).then(|| Warning {
            code: "autocast-copies".into(),
            severity: Severity::Note,
            message: format!(
                "Autocast keeps low-precision copies of weights, {bytes} at the peak: mixed precision saves activations \
                 only, so at a small batch it can cost more than it saves. Compare with `bf16` weights."
            ),
            args: vec![("bytes".into(), bytes.to_string())],
        })
    }

    /// Names a pattern of parameters' names that no parameter has, as where tools name modules as transformers 4 did.
    fn names_match_nothing(&self) -> Option<Warning> {
        let unmatched = super::build::unmatched_names(self.model, self.setup)?;
        let patterns = unmatched.patterns.join(" ");
        let names = unmatched.known.join(", ");
        Some(Warning {
            code: "names-match-nothing".into(),
            severity: Severity::Warning,
            message: format!(
                "No parameter of the model has a name with {patterns}: nothing is frozen or trained by it. Names are such \
                 as {names}."
            ),
            args: vec![("names".into(), names), ("patterns".into(), patterns)],
        })
    }

    fn frozen_is_not_free(&self) -> Option<Warning> {
        let frozen = match self.setup.freeze.frozen().language {
            true => Component::LanguageModel,
            false => return None,
        };
        let bytes = self.sum(|t| t.component == frozen && t.kind() == Kind::Activation);
        self.is_a_fifth(bytes).then(|| Warning {
            code: "frozen-is-not-free".into(),
            severity: Severity::Note,
            message: format!(
                "The language model's weights are frozen, yet it keeps {bytes} of activations: gradients pass through it \
                 on their way to what is trained. Checkpointing takes these away."
            ),
            args: vec![("bytes".into(), bytes.to_string())],
        })
    }

    fn frozen_tower_keeps_a_graph(&self) -> Option<Warning> {
        let frozen = self.setup.ckpt != Checkpointing::None && self.setup.freeze.frozen().vision;
        if !frozen {
            return None;
        }
        let bytes = self.report.held_after_forward(Component::VisionTower, Kind::Activation);
        (bytes > Bytes::ZERO).then(|| Warning {
            code: "frozen-tower-keeps-graph".into(),
            severity: Severity::Note,
            message: format!(
                "The vision tower is frozen, yet it keeps {bytes} for backward and runs twice: with checkpointing on, \
                 transformers makes the outputs of embeddings require gradients. Run the tower under torch.no_grad, or \
                 checkpoint the language model alone."
            ),
            args: vec![("bytes".into(), bytes.to_string())],
        })
    }

    fn paged_states(&self) -> Option<Warning> {
        let bytes = self.report.paged;
        (bytes > Bytes::ZERO).then(|| Warning {
            code: "paged-states".into(),
            severity: Severity::Note,
            message: format!(
                "{bytes} of optimizer states are paged: CUDA moves them between host and device, and no figure of \
                 PyTorch's allocator holds them. Leave room for them on the device, or each step waits for the host."
            ),
            args: vec![("bytes".into(), bytes.to_string())],
        })
    }

    fn scaler_skips(&self) -> Option<Warning> {
        let states = self.sum(|t| t.kind() == Kind::OptimizerState);
        (self.setup.precision.has_scaler() && states > Bytes::mib(1)).then(|| Warning {
            code: "scaler-skips".into(),
            severity: Severity::Note,
            message: format!(
                "GradScaler skips steps whose fp16 gradients overflow, often the first few. Until one is taken, the \
                 optimizer's {states} do not exist: watch the memory after several steps, not after the first."
            ),
            args: vec![("states".into(), states.to_string())],
        })
    }
}

/// Returns true if the bytes are at least a fifth of the peak, and so worth looking at first.
fn is_a_fifth(bytes: Bytes, report: &Report) -> bool {
    bytes.get() * 5 >= report.peak_allocated.get()
}

/// Names what logits and the loss hold; a fused loss is advised where `can_fuse` says that the run is simulated with it.
fn logits(live: &Live<'_>, report: &Report, can_fuse: bool) -> Option<Warning> {
    let bytes = live.sum(|t| t.component == Component::Head && matches!(t.kind(), Kind::Activation | Kind::Temporary));
    let (code, advice) = match can_fuse {
        true => (
            "logits",
            "Shorten the sequence, lower the batch, or use a fused linear cross-entropy.",
        ),
        false => ("logits-kept", "Shorten the sequence or lower the batch."),
    };
    is_a_fifth(bytes, report).then(|| Warning {
        code: code.into(),
        severity: Severity::Warning,
        message: format!(
            "Logits and the loss hold {bytes} at the peak: transformers computes the loss in fp32, beside a copy in \
             the model's own type. {advice}"
        ),
        args: vec![("bytes".into(), bytes.to_string())],
    })
}

fn fragmentation(report: &Report) -> Option<Warning> {
    let bytes = report.fragmentation;
    (bytes.get() * 10 >= report.peak_reserved.get()).then(|| Warning {
        code: "fragmentation".into(),
        severity: Severity::Note,
        message: format!(
            "The allocator reserves {bytes} more than tensors ever hold. Set \
             PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to get most of it back."
        ),
        args: vec![("bytes".into(), bytes.to_string())],
    })
}

fn first_step(report: &Report) -> Option<Warning> {
    let (first, steady) = (report.first.peak(), report.peak_allocated);
    // A difference of less than a percent would print as the same figure.
    (first.get() > steady.get() + steady.get() / 100).then(|| Warning {
        code: "first-step-is-higher".into(),
        severity: Severity::Note,
        message: format!(
            "The first step peaks at {first}, above later ones ({steady}): judge by it whether the run starts at all."
        ),
        args: vec![
            ("first".into(), first.to_string()),
            ("steady".into(), steady.to_string()),
        ],
    })
}
