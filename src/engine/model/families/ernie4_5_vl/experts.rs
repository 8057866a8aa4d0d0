//! Experts of ERNIE 4.5 VL's text and images (`transformers/models/ernie4_5_vl_moe/modeling_ernie4_5_vl_moe.py`).

use std::cell::Cell;
use std::rc::Rc;

use super::config::Ernie45VlConfig;
use crate::dtype::DType;
use crate::model::decoder::ExpertsConfig;
use crate::model::decoder::layer::FeedForward;
use crate::model::decoder::mlp::Mlp;
use crate::model::decoder::sparse::SparseMlp;
use crate::nn::Builder;
use crate::tape::{Module, Tape, Tensor};

/// Positions of a batch that experts of images take; 0 in a batch without images.
pub type Marked = Rc<Cell<u64>>;

/// `Ernie4_5_VLMoeMoeBlock`.
pub struct ModalityExperts {
    module: Module,
    text_moe: SparseMlp,
    vision_moe: SparseMlp,
    shared_experts: Option<Mlp>,
    experts: u64,
    marked: Marked,
}

impl ModalityExperts {
    /// Makes the experts of both, and the one that all tokens pass.
    pub fn new(b: &Builder, c: &Ernie45VlConfig, of_text: &ExpertsConfig, marked: &Marked) -> Self {
        let (t, form) = (b.tape(), (c.text.activation, c.text.mlp_bias));
        let shared = |width| t.scope("shared_experts", || Mlp::of(b, [c.text.hidden, width], form.1, form.0));
        Self {
            module: b.module(),
            text_moe: t.scope("text_moe", || SparseMlp::new(b, form, of_text)),
            vision_moe: t.scope("vision_moe", || SparseMlp::new(b, form, &c.image_experts)),
            shared_experts: c.shared.map(shared),
            experts: of_text.sizes.experts,
            marked: marked.clone(),
        }
    }

    /// Sends the tokens of text and of images, `marked` of them, to their experts; returns the mask of images beside what
    /// these make and the router's logits.
    fn by_modality(&self, t: &Tape, x: &Tensor, marked: u64) -> ([Tensor; 2], Option<Tensor>) {
        let [batch, seq, hidden] = [x.size(0), x.size(1), x.size(2)];
        drop(t.any_of_ids(x, [batch, seq]));
        let mut out = t.compute(x, x.dtype(), "zeros_like");
        let mut logits = t.empty([batch * seq, self.experts], DType::F32, "zeros");
        let of_images = t.empty([batch, seq], DType::Bool, "to bool");
        let by_router = t.expand(&t.view(&of_images, [batch * seq, 1]), [batch * seq, self.experts]);
        let by_states = t.expand(&t.unsqueeze(&of_images, 2), [batch, seq, hidden]);
        for is_text in [true, false] {
            let (module, tokens) = match is_text {
                true => (&self.text_moe, batch * seq - marked),
                false => (&self.vision_moe, marked),
            };
            let mask = |of: &Tensor| match is_text {
                true => t.empty(*of.shape(), DType::Bool, "bitwise_not"),
                false => of.clone(),
            };
            let rows = t.index_rows(x, &mask(&by_states), tokens * hidden);
            let [of_module, of_router] = module.call_on_rows(t, &t.view(&rows, [tokens, hidden]));
            drop(rows);
            let flat = t.view(&of_module, [tokens * hidden]);
            drop(of_module);
            out = t.index_put_rows(out, &mask(&by_states), &flat);
            drop(flat);
            let flat = t.view(&of_router, [tokens * self.experts]);
            drop(of_router);
            logits = t.index_put_rows(logits, &mask(&by_router), &flat);
        }
        ([out, logits], Some(of_images))
    }
}

impl FeedForward for ModalityExperts {
    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.call_with_logits(t, x).0
    }

    fn call_with_logits(&self, t: &Tape, x: Tensor) -> (Tensor, Option<Tensor>) {
        self.module.call(t, move || {
            let shape = *x.shape();
            let shared = self.shared_experts.as_ref().map(|mlp| mlp.call(t, x.clone()));
            let ([mut out, logits], _of_images) = match self.marked.get() {
                0 => {
                    let rows = t.view(&x, [shape[0] * shape[1], shape[2]]);
                    let [out, logits] = self.text_moe.call_on_rows(t, &rows);
                    ([t.view(&out, shape), logits], None)
                }
                marked => self.by_modality(t, &x, marked),
            };
            if let Some(shared) = shared {
                out = t.add(&out, &shared);
            }
            (out, Some(logits))
        })
    }
}
