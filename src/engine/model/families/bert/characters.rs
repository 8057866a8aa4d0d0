//! Embeddings of how characters sound and look, beside those of tokens (RoCBERT).

use super::config::CharactersConfig;
use crate::dtype::DType;
use crate::nn::{Builder, Embedding, Linear};
use crate::tape::{Tape, Tensor};

/// Two tables, and the linear layer of what is joined.
pub(super) struct Characters {
    config: CharactersConfig,
    sounds: Embedding,
    looks: Embedding,
    /// `map_inputs_layer`.
    map: Option<Linear>,
}

impl Characters {
    /// Makes the tables, which come before those of positions and types.
    pub fn new(b: &Builder, config: CharactersConfig) -> Self {
        let table = |name, [entries, width]: [u64; 2]| Embedding::new(b, name, entries, width);
        Self {
            config,
            sounds: table("pronunciation_embed", config.sounds),
            looks: table("shape_embed", config.looks),
            map: None,
        }
    }

    /// Makes the linear layer to `width`, which comes after them.
    pub fn joined(self, b: &Builder, width: u64) -> Self {
        let read = |reads, [_, width]: [u64; 2]| if reads { width } else { 0 };
        let c = self.config;
        let input = width + read(c.reads_sounds, c.sounds) + read(c.reads_looks, c.looks);
        let map = c.joined.then(|| Linear::new(b, "map_inputs_layer", input, width, true));
        Self { map, ..self }
    }

    /// True if the tables are read: nothing else gives ids of sounds and looks, which are zeros then.
    pub fn are_joined(&self) -> bool {
        self.map.is_some()
    }

    /// Joins embeddings of tokens [batch, seq, width] with those of their characters, and projects them to `width`. The
    /// caller's variables hold the ids and the embeddings of the characters, which come second.
    pub fn join(&self, t: &Tape, words: &Tensor) -> (Tensor, Vec<Tensor>) {
        let [batch, seq] = [words.size(0), words.size(1)];
        let c = self.config;
        let mut held = Vec::new();
        let mut h = t.clone_of(words);
        for (reads, table) in [(c.reads_looks, &self.looks), (c.reads_sounds, &self.sounds)] {
            if reads {
                let ids = t.empty([batch, seq], DType::I64, "ids of characters");
                let embedded = table.call(t, &ids);
                h = t.cat(&[&h, &embedded], 2);
                held.extend([ids, embedded]);
            }
        }
        if let Some(map) = &self.map {
            h = map.call(t, &h);
        }
        (h, held)
    }

    /// Adds `others` in place to `h`, which the linear layer made.
    pub fn added(&self, t: &Tape, h: Tensor, others: &Tensor) -> Tensor {
        match self.gives_view(t) {
            true => t.add_to_view(h, others),
            false => t.add_(h, others),
        }
    }

    /// Reads `h`, which the linear layer made, after others were added to it in place.
    pub fn read(&self, t: &Tape, h: Tensor) -> Tensor {
        match self.gives_view(t) {
            true => t.view_again(&h),
            false => h,
        }
    }

    fn gives_view(&self, t: &Tape) -> bool {
        self.map.as_ref().is_some_and(|map| map.gives_view(t))
    }

    /// What is done to the finished embeddings if nothing is joined: their mean with embeddings of characters, of which
    /// a batch of text has none.
    pub fn finished(&self, t: &Tape, h: Tensor) -> Tensor {
        if self.are_joined() {
            return h;
        }
        let whole = t.scale_(t.clone_of(&h));
        drop(h);
        whole
    }
}
