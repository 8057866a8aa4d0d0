//! Number of text positions that a model supports.

use super::Model;
use super::answers::Positions;
use crate::Setup;

impl Model {
    /// Entries of a table of learned text positions, past which a run stops with an index error; `None` if positions
    /// are rotary or the model has no text length to choose.
    pub fn learned_positions(&self) -> Option<u64> {
        match self.config.family().positions() {
            Positions::Learned(positions) => Some(positions),
            Positions::Rotary(_) | Positions::Simulated(_) | Positions::Fixed => None,
        }
    }

    /// The most tokens of a text that is simulated, if a longer one runs through other code.
    pub fn simulated_positions(&self) -> Option<u64> {
        match self.config.family().positions() {
            Positions::Simulated(most) => Some(most),
            Positions::Learned(_) | Positions::Rotary(_) | Positions::Fixed => None,
        }
    }

    /// Positions that a model with rotary ones was trained for (`max_position_embeddings`): a longer text runs, but was
    /// never seen in training.
    pub fn rotary_positions(&self) -> Option<u64> {
        match self.config.family().positions() {
            Positions::Rotary(positions) => Some(positions),
            Positions::Learned(_) | Positions::Simulated(_) | Positions::Fixed => None,
        }
    }

    /// Default number of text positions: that of [`Setup::default`], raised to those that one image takes, and limited
    /// to the learned or simulated ones.
    pub fn default_seq(&self) -> u64 {
        let usual = Setup::default();
        let wanted = usual.seq.max(self.image_tokens(&usual));
        let most = self.learned_positions().or_else(|| self.simulated_positions());
        most.map_or(wanted, |most| most.min(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_positions_bounds_the_usual_length() {
        let seq = |name| Model::from_catalogue(name).unwrap().default_seq();
        assert_eq!(
            ["gpt2", "facebook/opt-125m", "llama3.2-1b", "vit-large"].map(seq),
            [1024, 2048, 2048, 2048]
        );
        assert_eq!(seq("llava-hf/llava-v1.6-mistral-7b-hf"), 2928);
    }
}
