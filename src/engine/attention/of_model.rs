//! Default attention call for a model.

use super::call::{Call, Pass};
use crate::model::Model;
use crate::model::answers::Heads;
use crate::setup::Setup;

impl Call {
    /// Attention call of a model's language model, or of its tower if it has no text; window 512, top 10%, chunks of
    /// 64.
    pub fn of(model: &Model, setup: &Setup) -> Self {
        let Heads {
            query: heads,
            key_value: kv_heads,
            width,
        } = model.config.family().heads();
        Self {
            batch: setup.batch,
            heads,
            kv_heads,
            width,
            dtype: setup.precision.products(),
            causal: model.takes().text,
            window: 512,
            kept_percent: 10,
            chunk: 64,
            pass: Pass::Training,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_heads_come_from_the_language_model() {
        let call = |name: &str| {
            let model = Model::from_catalogue(name).expect("it is in the catalogue");
            Call::of(&model, &Setup::default())
        };
        let of = |call: Call| [call.heads, call.kv_heads, call.width];
        assert_eq!(of(call("qwen2.5-7b")), [28, 4, 128]);
        assert_eq!(of(call("gpt2")), [12, 12, 64]);
        assert!(call("llava-1.5-7b").causal && !call("vit-large").causal);
    }
}
