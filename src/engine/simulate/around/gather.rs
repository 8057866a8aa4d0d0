//! Whole weights that are gathered for a state dict: by DeepSpeed's stage 3, module by module
//! (`_zero3_consolidated_16bit_state_dict`), by FSDP2 tensor by tensor (`get_model_state_dict` with `full_state_dict`).

use super::loads::{Made, modules};
use super::run::Run;
use super::script::Peaks;
use crate::dtype::DType;
use crate::report::{HostBytes, Occasion, OnCard};
use crate::setup::Strategy;
use crate::units::Bytes;

/// The card while whole weights are gathered between two steps; `None` if each GPU has them whole.
pub(super) fn gather(run: &Run<'_>) -> Option<OnCard> {
    let parallel = run.beside.parallel?;
    let of_module = run.beside.is(Strategy::Deepspeed3);
    if !of_module && !parallel.strategy.keeps_parts_of_parameters() {
        return None;
    }
    let dtype = if of_module {
        DType::Bf16
    } else {
        run.setup.precision.weights()
    };
    let held = Made::new(run, dtype).held();
    let bytes = |elements: u64| elements.div_ceil(parallel.world) * parallel.world * dtype.width();
    let params = || held.iter().filter(|x| x.is_parameter);
    let largest = match of_module {
        true => modules(&held)
            .iter()
            .map(|module| {
                module
                    .iter()
                    .filter(|x| x.is_parameter)
                    .map(|x| bytes(x.elements))
                    .sum()
            })
            .max(),
        false => params().map(|x| bytes(x.elements)).max(),
    };
    let allocated = run.beside.between_steps + Bytes::new(largest.unwrap_or_default());
    let peaks = Peaks {
        allocated,
        reserved: allocated,
    };
    let own = params().map(|x| Bytes::new(x.bytes())).sum();
    Some(super::loads::on_card(Occasion::Gather, peaks, HostBytes::exactly(own)))
}
