//! Reasons for having no plan.

use vramscope_engine::format::grouped;
use vramscope_plan::search::{MOST_ACCUMULATED, NoBatch};

use crate::i18n::{Words, t_string};
use crate::words;
use crate::worker::plans::{MOST_GPUS, NoPlan};

/// Explains why there is no plan. The message about a configuration that cannot be read is in English.
pub fn refused(i18n: Words, why: &NoPlan) -> String {
    let count = |n: u64| grouped(n);
    match why {
        NoPlan::Card { name, message } => t_string!(
            i18n,
            recommend.no_such_card,
            message = message.clone(),
            card = name.clone()
        )
        .to_string(),
        NoPlan::Gpus(gpus) => t_string!(
            i18n,
            recommend.too_many_gpus,
            gpus = count(*gpus),
            most = count(MOST_GPUS)
        )
        .to_string(),
        NoPlan::Margin => t_string!(i18n, recommend.no_margin).to_string(),
        NoPlan::Model(message) => message.clone(),
        NoPlan::Batch(NoBatch { samples, gpus }) => t_string!(
            i18n,
            recommend.no_batch,
            samples = count(*samples),
            gpus = count(*gpus),
            most = count(MOST_ACCUMULATED)
        )
        .to_string(),
        NoPlan::Setup(why) => words::setup_refusal(i18n, why),
    }
}
