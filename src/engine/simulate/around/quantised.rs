//! Loading of weights in 4 bits: each linear layer is quantised as it comes (`Bnb4bitQuantize`), what is left is widened to
//! fp32 (peft's `prepare_model_for_kbit_training`), and adapters are put on.

use super::super::SimulateError;
use super::super::build::adapters;
use super::super::load::load_quantised;
use super::loads::{Made, file_bytes, on_card};
use super::run::{Run, stops};
use super::script::peaks_since;
use crate::dtype::DType;
use crate::model::forward::Forward;
use crate::nn::{Builder, LigerPatches, Trained};
use crate::report::{HostBytes, Occasion, OnCard};
use crate::setup::{CAUSAL_CONV1D, Freeze};
use crate::tape::{Tape, Tensor};

/// A model with 4-bit weights and adapters.
pub(super) struct Loaded {
    pub tape: Tape,
    pub params: Vec<Tensor>,
    _forward: Box<dyn Forward>,
}

impl Loaded {
    pub fn new(run: &Run<'_>) -> Self {
        let tape = Tape::new(run.gpu);
        tape.set_recast(Some(DType::F32));
        let products = run.setup.precision.products();
        let policy = Trained {
            freeze: Freeze::Qlora,
            dtype: products,
            frozen: products,
            nf4: Some(products),
            causal_conv1d: run.setup.packages.packages().contains(&CAUSAL_CONV1D),
            liger: LigerPatches::NOTHING,
        };
        let builder = Builder::new(&tape, policy);
        let forward = run.model.build(&builder);
        load_quantised(&tape, 0, &builder.made());
        builder.recast();
        builder.attach(&adapters(run.model, run.setup));
        Self {
            tape,
            params: builder.params(),
            _forward: forward,
        }
    }
}

/// Loads a model with 4-bit weights, up to its adapters.
pub(super) fn load(run: &Run<'_>) -> Result<OnCard, SimulateError> {
    let loaded = Loaded::new(run);
    stops(loaded.tape.failure())?;
    let products = run.setup.precision.products();
    let host = HostBytes {
        mapped: file_bytes(&Made::new(run, products).held(), run.beside.files),
        ..HostBytes::default()
    };
    let peaks = peaks_since(&loaded.tape, 0)?;
    Ok(on_card(Occasion::LoadQuantised, peaks, host))
}
