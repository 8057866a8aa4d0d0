//! A stack and its head.

use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, Builder, Linear};
use crate::tape::{Component, Tape, Tensor};

/// The stack of a language model: embeddings, blocks, last norm.
pub(crate) trait Stack {
    /// Token ids [batch, seq] → last hidden states [batch, seq, hidden], with samples packed into one row at the
    /// positions `packed`, [1, seq].
    fn hidden(&self, t: &Tape, run: &Run, ids: &Tensor, packed: Option<&Tensor>) -> Tensor;

    /// The same, and what the stack makes of the last hidden states beside them, which no loss reads: its output holds it
    /// until the model's forward returns.
    fn hidden_and_beside(
        &self,
        t: &Tape,
        run: &Run,
        ids: &Tensor,
        packed: Option<&Tensor>,
    ) -> (Tensor, Option<Tensor>) {
        (self.hidden(t, run, ids, packed), None)
    }

    /// As [`Forward::keeps_states`].
    fn keeps_states(&self) -> bool {
        false
    }

    /// Weight of the token embedding, [vocab, hidden].
    fn table(&self) -> &Tensor;
}

/// Form of a language model's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadForm {
    /// Name of the module.
    pub name: &'static str,
    /// True if it has a bias.
    pub bias: bool,
    /// True if it shares the token embedding's weight.
    pub is_tied: bool,
}

impl HeadForm {
    /// `lm_head` without a bias.
    pub const fn plain(is_tied: bool) -> Self {
        Self {
            name: "lm_head",
            bias: false,
            is_tied,
        }
    }

    fn make(self, b: &Builder, table: &Tensor) -> Linear {
        let [vocab, hidden] = [table.size(0), table.size(1)];
        // transformers keeps a head in full precision beside 4-bit weights, and peft's `all-linear` leaves it out. Here both
        // know it by the name `lm_head` alone: made by `Linear::new`, one of another name would be quantized and adapted.
        b.tape()
            .component("", Component::Head, || match (self.is_tied, self.bias) {
                (false, bias) if self.name == "lm_head" => Linear::new(b, self.name, hidden, vocab, bias),
                (false, bias) => Linear::head(b, self.name, hidden, vocab, bias),
                (true, false) => Linear::tied(b, self.name, table),
                (true, true) => Linear::tied(b, self.name, table).with_bias(b, self.name, vocab),
            })
    }
}

/// A head: last hidden states [batch, seq, hidden] → logits [batch, seq, vocab].
pub(crate) trait Head {
    /// Runs the head.
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor;

    /// The linear layer that the head is, if it is nothing else.
    fn linear(&self) -> Option<&Linear> {
        None
    }
}

struct LinearHead(Linear);

impl Head for LinearHead {
    fn logits(&self, t: &Tape, h: &Tensor) -> Tensor {
        self.0.call(t, h)
    }

    fn linear(&self) -> Option<&Linear> {
        Some(&self.0)
    }
}

/// A language model: a stack in the module `path`, and a head. It does not generate here: its cache of keys and values
/// was not compared.
pub(crate) struct TextLm<S> {
    path: &'static str,
    stack: S,
    head: Box<dyn Head>,
    loss: fn(&Tape, &Tensor, &Tensor) -> Tensor,
}

impl<S: Stack> TextLm<S> {
    /// Makes the stack, then a head that is a linear layer.
    pub fn new(b: &Builder, path: &'static str, form: HeadForm, stack: impl FnOnce() -> S) -> Self {
        let stack = b.tape().component(path, Component::LanguageModel, stack);
        let head = Box::new(LinearHead(form.make(b, stack.table())));
        Self::of(path, stack, head)
    }

    /// Makes the stack, then a head of its own with as many outputs as given, which has fewer than the table has entries.
    pub fn with_head_of(
        b: &Builder,
        path: &'static str,
        (form, outputs): (HeadForm, u64),
        stack: impl FnOnce() -> S,
    ) -> Self {
        let t = b.tape();
        let stack = t.component(path, Component::LanguageModel, stack);
        let hidden = stack.table().size(1);
        let make = || Linear::new(b, form.name, hidden, outputs, form.bias);
        Self::of(
            path,
            stack,
            Box::new(LinearHead(t.component("", Component::Head, make))),
        )
    }

    /// Takes a stack and a head that are made.
    pub fn of(path: &'static str, stack: S, head: Box<dyn Head>) -> Self {
        Self {
            path,
            stack,
            head,
            loss: nn::causal_lm_loss,
        }
    }

    /// Takes a loss of logits [batch, seq, vocab] and labels [batch, seq] in place of the causal one.
    pub fn with_loss(self, loss: fn(&Tape, &Tensor, &Tensor) -> Tensor) -> Self {
        Self { loss, ..self }
    }
}

impl<S: Stack> Forward for TextLm<S> {
    fn keeps_states(&self) -> bool {
        self.stack.keeps_states()
    }

    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        Batch::of_text(t, run)
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let Some(ids) = &batch.ids else {
            unreachable!("a text batch has ids")
        };
        let (h, beside) = t.component(self.path, Component::LanguageModel, || {
            self.stack.hidden_and_beside(t, run, ids, batch.positions.as_ref())
        });
        t.component("", Component::Head, || {
            let Some(labels) = &batch.labels else {
                return Output {
                    loss: self.head.logits(t, &t.slice(&h, 1, 1)),
                    held: Vec::new(),
                };
            };
            if let Some((scores, head)) = batch.scores.as_ref().zip(self.head.linear()) {
                return Output {
                    loss: scores.score(t, head, &h, labels),
                    held: Vec::new(),
                };
            }
            let logits = self.head.logits(t, &h);
            let loss = t.scope("loss", || (self.loss)(t, &logits, labels));
            // The hidden states are a local of the model's forward, freed when it returns.
            drop((h, beside));
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}
