//! Embeddings of tokens, positions and token types.

use super::config::{BertConfig, PositionForm, TypeForm};
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::nn::{self, Builder, Embedding, LayerNorm};
use crate::tape::{Module, Tape, Tensor};

/// The module `embeddings`.
pub(super) struct Embeddings {
    module: Module,
    words: Embedding,
    positions: Embedding,
    types: Option<Embedding>,
    tasks: Option<Embedding>,
    norm: Option<LayerNorm>,
    /// Every position, [1, positions].
    position_ids: Tensor,
    /// Zeros, [1, positions].
    token_type_ids: Option<Tensor>,
    counted: bool,
    /// True if positions are added in place.
    in_place: bool,
    dropout: f64,
}

impl Embeddings {
    /// Makes them.
    pub fn new(b: &Builder, c: &BertConfig) -> Self {
        let form = c.form;
        let width = c.embedding;
        let counted = form.positions == PositionForm::Counted;
        let words = Embedding::new(b, "word_embeddings", c.vocab, width);
        let positions = || Embedding::new(b, "position_embeddings", c.positions, width);
        let before = (!counted).then(positions);
        let types = form
            .types
            .map(|_| Embedding::new(b, "token_type_embeddings", c.types, width));
        let normed = !form.norms.ends_encoder();
        let norm = normed.then(|| LayerNorm::new(b, "LayerNorm", width));
        let table = |name| b.buffer(name, [1, c.positions], DType::I64);
        let position_ids = table("position_ids");
        let gathered = form.types == Some(TypeForm::Gathered);
        let token_type_ids = gathered.then(|| table("token_type_ids"));
        let tasks = c
            .tasks
            .map(|tasks| Embedding::new(b, "task_type_embeddings", tasks, width));
        Self {
            module: b.module(),
            words,
            positions: before.unwrap_or_else(positions),
            types,
            tasks,
            norm,
            position_ids,
            token_type_ids,
            counted,
            in_place: form.eager,
            dropout: c.hidden_dropout,
        }
    }

    /// The token embedding's weight, [vocab, width].
    pub fn weight(&self) -> &Tensor {
        self.words.weight()
    }

    /// Runs `_init_weights`, at the end of the constructor of the encoder.
    pub fn initialise(&self, t: &Tape) {
        drop(t.empty([self.position_ids.size(1)], DType::I64, "position_ids again"));
    }

    /// Token ids [batch, seq], and types if no table has them → [batch, seq, width].
    pub fn call(&self, t: &Tape, run: &Run, ids: &Tensor, types: Option<&Tensor>) -> Tensor {
        self.module.call(t, move || {
            let [batch, seq] = [ids.size(0), ids.size(1)];
            let position_ids = if self.counted {
                nn::counted_positions(t, ids)
            } else {
                t.slice(&self.position_ids, 1, seq)
            };
            let gathered = self.token_type_ids.as_ref().map(|_| {
                let gathered = t.empty([position_ids.size(0), seq], DType::I64, "gather");
                t.expand(&gathered, [batch, seq])
            });
            let types = self.types.as_ref().zip(gathered.as_ref().or(types));
            let words = self.words.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
            let mut h = words.clone();
            let of_types = types.map(|(types, ids)| {
                let of_types = types.call(t, ids);
                h = t.add(&h, &of_types);
                of_types
            });
            let positions = self.positions.call(t, &position_ids);
            h = match self.in_place {
                true => t.add_(h, &positions),
                false => t.add(&h, &positions),
            };
            let of_tasks = self.tasks.as_ref().map(|tasks| {
                let ids = t.empty([batch, seq], DType::I64, "task_type_ids");
                let of_tasks = tasks.call(t, &ids);
                (ids, of_tasks)
            });
            if let Some((_, of_tasks)) = &of_tasks {
                h = t.add_(h, of_tasks);
            }
            if let Some(norm) = &self.norm {
                h = norm.call(t, &h);
            }
            h = t.dropout(&h, self.dropout);
            drop((of_tasks, positions, of_types, words, gathered, position_ids));
            h
        })
    }
}
