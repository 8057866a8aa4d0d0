//! Embeddings of tokens, positions and token types.

use super::characters::Characters;
use super::config::{BertConfig, PositionForm, TypeForm};
use crate::dtype::DType;
use crate::model::forward::Run;
use crate::nn::{self, Builder, Embedding, LayerNorm};
use crate::tape::{Module, Tape, Tensor};

/// The module `embeddings`.
pub(super) struct Embeddings {
    module: Module,
    words: Embedding,
    characters: Option<Characters>,
    positions: Option<Embedding>,
    types: Option<Embedding>,
    tasks: Option<Embedding>,
    norm: Option<LayerNorm>,
    /// Every position, [1, positions]; none if they are rotary.
    position_ids: Option<Tensor>,
    /// Zeros, [1, positions].
    token_type_ids: Option<Tensor>,
    types_form: Option<TypeForm>,
    counted: bool,
    /// True if embeddings of tokens are scaled.
    scales: bool,
    /// True if positions are added in place.
    in_place: bool,
    dropout: f64,
    dropout_first: bool,
}

impl Embeddings {
    /// Makes them.
    pub fn new(b: &Builder, c: &BertConfig) -> Self {
        let form = c.form;
        let width = c.embedding;
        let counted = form.positions == PositionForm::Counted;
        let words = Embedding::new(b, "word_embeddings", c.vocab, width);
        let characters = c.characters.map(|characters| Characters::new(b, characters));
        let rotary = form.positions == PositionForm::Rotary;
        let positions = || (!rotary).then(|| Embedding::new(b, "position_embeddings", c.positions, width));
        let before = if counted { None } else { positions() };
        let types = form
            .types
            .map(|_| Embedding::new(b, "token_type_embeddings", c.types, width));
        let characters = characters.map(|characters| characters.joined(b, width));
        let normed = !form.norms.ends_encoder();
        let norm = normed.then(|| LayerNorm::new(b, "LayerNorm", width));
        let table = |name| b.buffer(name, [1, c.positions], DType::I64);
        let position_ids = (!rotary).then(|| table("position_ids"));
        let of_zeros = matches!(form.types, Some(TypeForm::Gathered | TypeForm::Sliced));
        let token_type_ids = of_zeros.then(|| table("token_type_ids"));
        let tasks = c
            .tasks
            .map(|tasks| Embedding::new(b, "task_type_embeddings", tasks, width));
        Self {
            module: b.module(),
            words,
            characters,
            positions: if counted { positions() } else { before },
            types,
            tasks,
            norm,
            position_ids,
            token_type_ids,
            types_form: form.types,
            counted,
            scales: c.scales_embeddings,
            in_place: form.positions_in_place,
            dropout: c.hidden_dropout,
            dropout_first: form.dropout_first,
        }
    }

    /// The token embedding's weight, [vocab, width].
    pub fn weight(&self) -> &Tensor {
        self.words.weight()
    }

    /// Runs `_init_weights`, at the end of the constructor of the encoder.
    pub fn initialise(&self, t: &Tape) {
        if let Some(ids) = &self.position_ids {
            drop(t.empty([ids.size(1)], DType::I64, "position_ids again"));
        }
    }

    /// Token ids [batch, seq], and types if no table has them → [batch, seq, width].
    pub fn call(&self, t: &Tape, run: &Run, ids: &Tensor, types: Option<&Tensor>) -> Tensor {
        self.module.call(t, move || {
            let [batch, seq] = [ids.size(0), ids.size(1)];
            let position_ids = match &self.position_ids {
                Some(_) if self.counted => Some(nn::counted_positions(t, ids)),
                table => table.as_ref().map(|table| t.slice(table, 1, seq)),
            };
            let from_zeros = self.types_from_zeros(t, position_ids.as_ref(), [batch, seq]);
            let types = from_zeros.as_ref().or(types);
            let mut words = self.words.call_hooked(t, ids, |embeds| run.embedded(t, embeds));
            if self.scales {
                words = t.scale(&words);
            }
            let (mut h, held) = self.with_characters(t, &words);
            let of_types = self.types.as_ref().zip(types).map(|(table, ids)| table.call(t, ids));
            if let Some(of_types) = &of_types {
                h = self.added(t, h, of_types, false);
            }
            let of_positions = self.positions.as_ref().zip(position_ids.as_ref());
            let of_positions = of_positions.map(|(table, ids)| table.call(t, ids));
            if let Some(of_positions) = &of_positions {
                h = self.added(t, h, of_positions, self.in_place);
            }
            let of_tasks = self.tasks.as_ref().map(|tasks| {
                let ids = t.empty([batch, seq], DType::I64, "task_type_ids");
                let of_tasks = tasks.call(t, &ids);
                (ids, of_tasks)
            });
            if let Some((_, of_tasks)) = &of_tasks {
                h = t.add_(h, of_tasks);
            }
            if let Some(characters) = self.joined() {
                h = characters.read(t, h);
            }
            h = self.finished(t, h);
            if let Some(characters) = &self.characters {
                h = characters.finished(t, h);
            }
            drop((held, of_tasks, of_positions, of_types, words, from_zeros, position_ids));
            h
        })
    }

    /// Norm and dropout.
    fn finished(&self, t: &Tape, mut h: Tensor) -> Tensor {
        if self.dropout_first {
            h = t.dropout(&h, self.dropout);
        }
        if let Some(norm) = &self.norm {
            h = norm.call(t, &h);
        }
        if self.dropout_first {
            h
        } else {
            t.dropout(&h, self.dropout)
        }
    }

    /// Types from the table of zeros, [batch, seq].
    fn types_from_zeros(&self, t: &Tape, position_ids: Option<&Tensor>, [batch, seq]: [u64; 2]) -> Option<Tensor> {
        let zeros = self.token_type_ids.as_ref()?;
        let row = match self.types_form {
            Some(TypeForm::Gathered) => {
                let rows = position_ids.map_or(1, |ids| ids.size(0));
                t.empty([rows, seq], DType::I64, "gather")
            }
            _ => t.slice(zeros, 1, seq),
        };
        Some(t.expand(&row, [batch, seq]))
    }

    /// Embeddings of tokens, joined with those of their characters, and what the caller's variables hold.
    fn with_characters(&self, t: &Tape, words: &Tensor) -> (Tensor, Vec<Tensor>) {
        match self.joined() {
            Some(characters) => characters.join(t, words),
            None => (words.clone(), Vec::new()),
        }
    }

    /// The tables of characters, if their embeddings are joined with those of tokens.
    fn joined(&self) -> Option<&Characters> {
        self.characters.as_ref().filter(|characters| characters.are_joined())
    }

    /// Embeddings with others added, in place if so asked or if they are joined.
    fn added(&self, t: &Tape, h: Tensor, others: &Tensor, in_place: bool) -> Tensor {
        match self.joined() {
            Some(characters) => characters.added(t, h, others),
            None if in_place => t.add_(h, others),
            None => t.add(&h, others),
        }
    }
}
