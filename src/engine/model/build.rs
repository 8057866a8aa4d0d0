//! Makes a model's modules, by the code of its family.

use super::Model;
use super::decoder::causal_lm::CausalLm;
use super::forward::Forward;
use crate::nn::Builder;

impl Model {
    /// Makes the modules and their parameters on the builder's tape ([`Family::build`](super::family::Family::build)).
    pub(crate) fn build(&self, b: &Builder) -> Box<dyn Forward> {
        // A pipeline stage after the first has blocks of the language model only, and receives the merged embeddings.
        if let (false, Some(text)) = (b.tape().stage().is_first(), self.config.family().support().pipeline) {
            return Box::new(CausalLm::new(b, text));
        }
        self.config.family().build(b)
    }
}
