//! Encoders like BERT's beneath the head of a language model.

mod block;
mod config;
mod embeddings;
mod head;
mod stack;

pub(crate) use config::{BertConfig, BertForm, HeadModule, NormPlace, PositionForm, Projection, TypeForm};
