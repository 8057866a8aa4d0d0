//! TRL's head, which makes figures of each token in place of logits (`add_fused_lm_head` in `trl/trainer/utils.py`).

use std::cell::RefCell;
use std::rc::Rc;

use super::linear::Linear;
use crate::dtype::DType;
use crate::tape::{LogProbs, Tape, Tensor, TokenFigures};

/// Request for figures of each token, and what a forward made of it.
#[derive(Clone)]
pub struct TokenScores {
    /// Labels of the batch that are not -100, without the first position of each row.
    pub counted: u64,
    /// Figures beside the log-probabilities.
    pub asked: TokenFigures,
    made: Rc<RefCell<Option<FusedOutput>>>,
}

/// `FusedCausalLMOutput`: everything [batch, seq - 1], zero where the label does not count.
pub struct FusedOutput {
    /// The loss, which TRL's trainers compute again from the log-probabilities.
    pub loss: Tensor,
    /// Number of labels that count, at least 1.
    pub count: Tensor,
    /// Figures of each token.
    pub figures: LogProbs,
    /// Marks of the labels that count.
    pub mask: Tensor,
}

impl FusedOutput {
    /// The same with `f` of each tensor of floating-point numbers.
    #[must_use]
    pub fn map(self, f: impl Fn(&Tensor) -> Tensor) -> Self {
        let loss = f(&self.loss);
        Self {
            loss,
            figures: LogProbs {
                log_probs: f(&self.figures.log_probs),
                entropy: self.figures.entropy.as_ref().map(&f),
                mean_logits: self.figures.mean_logits.as_ref().map(&f),
                is_top1: self.figures.is_top1,
            },
            count: self.count,
            mask: self.mask,
        }
    }
}

impl TokenScores {
    /// Asks for figures of this many tokens.
    pub fn new(counted: u64, asked: TokenFigures) -> Self {
        Self {
            counted,
            asked,
            made: Rc::default(),
        }
    }

    /// Takes what the forward made; `None` if it has a head that TRL's does not replace.
    pub fn take(&self) -> Option<FusedOutput> {
        self.made.take()
    }

    /// Runs the head on the last hidden states [batch, seq, width], with labels [batch, seq]; returns the loss.
    pub fn score(&self, t: &Tape, head: &Linear, hidden: &Tensor, labels: &Tensor) -> Tensor {
        let made = self.output(t, head, hidden, labels);
        let loss = made.loss.clone();
        self.made.replace(Some(made));
        loss
    }

    fn output(&self, t: &Tape, head: &Linear, hidden: &Tensor, labels: &Tensor) -> FusedOutput {
        let shorter = |x: &Tensor| t.narrow(x, 1, x.size(1).saturating_sub(1));
        let (states, labels) = (shorter(hidden), shorter(labels));
        let mask = t.compute(&labels, DType::Bool, "labels != -100");
        let weight = t.taken(head.head_weight());
        let counted = self.counted.min(mask.numel());
        let rows = t.index_rows(&states, &mask, counted);
        let targets = t.index_ids(&mask, counted, DType::I64);
        let bias = head.head_bias();
        let raw = t.chunked_log_probs(&rows, (&weight, bias.as_ref()), &targets, self.asked);
        drop((rows, targets));
        let scattered = |x: &Tensor| t.scatter_marked(x, &mask);
        let figures = LogProbs {
            log_probs: scattered(&raw.log_probs),
            entropy: raw.entropy.as_ref().map(scattered),
            mean_logits: raw.mean_logits.as_ref().map(scattered),
            is_top1: raw.is_top1.as_ref().map(scattered),
        };
        drop(raw);
        let total = t.sum_all(&figures.log_probs);
        let negated = t.neg(&total);
        drop(total);
        let all = t.count(&mask, &[0, 1]);
        let count = t.compute(&all, DType::I64, "clamp");
        drop(all);
        let loss = t.div(&negated, &count);
        FusedOutput {
            loss,
            count,
            figures,
            mask,
        }
    }
}
