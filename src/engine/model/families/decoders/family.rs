//! Decoders like Llama's as a family of models.

use super::{MODEL_TYPES, OF_WHOLE, named};
use crate::model::ModelError;
use crate::model::answers::{Fidelity, Heads, ImageForm, Positions, Sizes, Support, TensorPlan};
use crate::model::config::section::Section;
use crate::model::decoder::causal_lm::CausalLm;
use crate::model::decoder::{DecoderConfig, Modules};
use crate::model::facts::{Facts, UseCache};
use crate::model::family::{Family, Registered};
use crate::model::forward::{Forward, MainInputs};
use crate::model::lazy::Blocks;
use crate::model::libraries::{AdapterMaps, NoFlash};
use crate::model::takes::Takes;
use crate::nn::Builder;
use crate::setup::Setup;

static FACTS: Facts = Facts {
    model_types: MODEL_TYPES,
    // Each decoder's own are in its folder.
    catalogue: &[],
    overrides: &[],
    use_cache: UseCache::OfText,
};

impl Registered for DecoderConfig {
    const FACTS: &'static Facts = &FACTS;

    fn read_config(model_type: &str, s: &Section) -> Result<Self, ModelError> {
        let family = named(model_type)?;
        match OF_WHOLE.contains(&model_type) {
            true => Self::read(&s.nested("text_config", family.name())?, family),
            false => Self::read(s, family),
        }
    }
}

impl Family for DecoderConfig {
    fn build(&self, b: &Builder) -> Box<dyn Forward> {
        match self.family.modules {
            Modules::Llama(_) => Box::new(CausalLm::new(b, self)),
            Modules::Gemma(_) => (Blocks::get().gemma)(b, self),
        }
    }

    fn fidelity(&self) -> Fidelity {
        match self.family.stands_in {
            true => Fidelity::StandIn,
            false => Fidelity::Exact,
        }
    }

    fn takes(&self) -> Takes {
        Takes::TEXT
    }

    fn positions(&self) -> Positions {
        Positions::Rotary(self.max_positions)
    }

    fn heads(&self) -> Heads {
        Heads::of_decoder(self)
    }

    fn inputs(&self, sizes: &[[u64; 2]]) -> u64 {
        sizes.len() as u64
    }

    fn image_tokens(&self, _: &Setup) -> u64 {
        0
    }

    fn image_form(&self) -> ImageForm<'_> {
        ImageForm::Stacked
    }

    fn sizes(&self) -> Sizes {
        Sizes::FIXED
    }

    fn support(&self) -> Support<'_> {
        Support {
            main_inputs: MainInputs {
                model_takes_ids: true,
                tower_takes_ids: false,
            },
            adapters: match self.experts {
                Some(_) if self.family.name() == "phimoe" => AdapterMaps::BesideExpertsAndRouter,
                Some(_) => AdapterMaps::BesideExperts,
                None => AdapterMaps::Usual,
            },
            liger: self.family.liger,
            no_flash: self.family.refuses_flash().then_some(NoFlash::NotSimulated),
            tensor_parallel: TensorPlan::of(self, true),
            pipeline: self.pipelined(),
        }
    }
}
