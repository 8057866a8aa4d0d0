//! Losses that are not simulated: what each makes of samples and logits.

/// A loss of which a larger step is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherLoss {
    /// Chosen and rejected answers, beside those of a reference model: DPO and its kin.
    Dpo,
    /// Chosen and rejected answers, and the cross-entropy of the chosen ones: ORPO, CPO, SimPO.
    Orpo,
    /// Answers that are good or bad, and others of the same batch, beside those of a reference model.
    Kto,
    /// One number for each chosen and rejected answer.
    Reward,
    /// A few numbers for each sample.
    Classes,
    /// A vector for each sample and for what it is compared with.
    Embedding,
    /// A number for each of some answers to a question.
    Ranked,
    /// The same, of the logits of one token.
    RankedByToken,
    /// The logits of a teacher.
    Distilled,
    /// Completions that are generated, beside their probabilities in a reference model.
    Grpo,
}

impl OtherLoss {
    /// The loss of this name, as tools write it.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "dpo" | "ipo" => Self::Dpo,
            "orpo" | "cpo" | "simpo" => Self::Orpo,
            "kto" => Self::Kto,
            "rm" | "reward" => Self::Reward,
            "embedding" => Self::Embedding,
            "seq_cls" | "prm" => Self::Classes,
            "reranker" => Self::Ranked,
            "generative_reranker" => Self::RankedByToken,
            "gkd" => Self::Distilled,
            "grpo" => Self::Grpo,
            _ => return None,
        })
    }

    /// Name in remarks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dpo => "DPO",
            Self::Orpo => "ORPO, CPO or SimPO",
            Self::Kto => "KTO",
            Self::Reward => "the loss of a reward model",
            Self::Classes => "the loss of classes",
            Self::Embedding => "the loss of embeddings",
            Self::Ranked | Self::RankedByToken => "the loss of a reranker",
            Self::Distilled => "GKD",
            Self::Grpo => "GRPO",
        }
    }

    /// Samples of a forward for each of a micro-batch.
    pub const fn samples(self) -> u64 {
        match self {
            Self::Dpo | Self::Orpo | Self::Reward => 2,
            _ => 1,
        }
    }

    /// Texts of each sample that stand behind one another in a row: a sample, its match and its negatives; a question with each
    /// of its answers, one of which is right (`MAX_NEGATIVE_SAMPLES` in `swift/template/base.py`, 4.6).
    pub fn texts(self, negatives: Option<u64>) -> u64 {
        match self {
            Self::Embedding => 2 + negatives.unwrap_or(0),
            Self::Ranked | Self::RankedByToken => 1 + negatives.unwrap_or(7),
            _ => 1,
        }
    }

    pub const fn has_logits(self) -> bool {
        !matches!(self, Self::Reward | Self::Classes | Self::Embedding | Self::Ranked)
    }

    pub const fn generates(self) -> bool {
        matches!(self, Self::Distilled | Self::Grpo)
    }

    pub const fn has_reference(self) -> bool {
        matches!(self, Self::Dpo | Self::Kto | Self::Grpo)
    }

    /// Tensors of the logits' shape, in those of fp32, that the step makes beyond a step of supervised fine-tuning, which at the
    /// same point holds logits in 16 bits, their log-probabilities in fp32 and the gradient of these: two and a half.
    ///
    /// Counted as if none was freed, in halves where they stay in 16 bits, as under DeepSpeed's engine, and else in fp32, into
    /// which accelerate or the tool turns them. Of the policy: logits, log-probabilities (`selective_log_softmax`, `get_batch_logps`); in backward the gradients
    /// of the gather, of the log-probabilities, of the slice, and of rows that are put together again. Without gradients, of
    /// the reference: logits and log-probabilities (`trl/trainer/dpo_trainer.py` and `kto_trainer.py`, 0.9 to 0.29;
    /// `llamafactory/train/trainer_utils.py`). The cross-entropy of half of the samples adds a copy, log-probabilities and their
    /// gradients (`rpo_alpha`, `orpo_trainer.py`, `cpo_trainer.py`). GKD makes 19 in forward and 12 in backward:
    /// both models' logits, divided by the temperature, and log-probabilities; those weighted, stacked and mixed; two
    /// divergences, weighted and added, and the labelled ones (`generalized_jsd_loss`).
    pub const fn copies(self, in_16_bits: bool, has_cross_entropy: bool) -> u64 {
        match (self, in_16_bits) {
            (Self::Reward | Self::Classes | Self::Embedding | Self::Ranked | Self::RankedByToken, _) => 0,
            (Self::Distilled, true) => 13,
            (Self::Distilled, false) => 29,
            (Self::Orpo, true) => 3,
            (Self::Orpo, false) => 7,
            (Self::Grpo, true) => 2,
            (Self::Grpo, false) => 6,
            (Self::Dpo | Self::Kto, true) if has_cross_entropy => 3,
            (Self::Dpo | Self::Kto, true) => 1,
            (Self::Dpo | Self::Kto, false) if has_cross_entropy => 7,
            (Self::Dpo | Self::Kto, false) => 4,
        }
    }
}
