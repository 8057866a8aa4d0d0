use crate::i18n::{Words, t_string};
use crate::state::Key;

/// What an entry means, in one sentence; nothing for those of the page itself.
pub fn help(i18n: Words, key: Key) -> Option<String> {
    let words = match key {
        Key::Model => t_string!(i18n, help.model),
        Key::Config => t_string!(i18n, help.config),
        Key::Gpu => t_string!(i18n, help.gpu),
        Key::Phase => t_string!(i18n, help.phase),
        Key::NewTokens => t_string!(i18n, help.new_tokens),
        Key::Batch => t_string!(i18n, help.batch),
        Key::Seq => t_string!(i18n, help.seq),
        Key::Lengths => t_string!(i18n, help.lengths),
        Key::Packing => t_string!(i18n, help.packing),
        Key::Images => t_string!(i18n, help.images),
        Key::Image => t_string!(i18n, help.image),
        Key::Grid => t_string!(i18n, help.grid),
        Key::Frames => t_string!(i18n, help.frames),
        Key::Precision => t_string!(i18n, help.precision),
        Key::Optim => t_string!(i18n, help.optim),
        Key::Ckpt => t_string!(i18n, help.ckpt),
        Key::Attn => t_string!(i18n, help.attn),
        Key::Freeze => t_string!(i18n, help.freeze),
        Key::Rank => t_string!(i18n, help.rank),
        Key::LoraDropout => t_string!(i18n, help.lora_dropout),
        Key::LoraTargets => t_string!(i18n, help.lora_targets),
        Key::LoraDtype => t_string!(i18n, help.lora_dtype),
        Key::Accum => t_string!(i18n, help.accum),
        Key::Clip => t_string!(i18n, help.clip),
        Key::ZeroGrad => t_string!(i18n, help.zero_grad),
        Key::AutocastCache => t_string!(i18n, help.autocast_cache),
        Key::Ema => t_string!(i18n, help.ema),
        Key::Loss => t_string!(i18n, help.loss),
        Key::Compare | Key::Lang | Key::Theme | Key::Embed | Key::Widget | Key::Id => return None,
    };
    Some(words.to_string())
}
