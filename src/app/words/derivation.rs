//! Translates derivations of numbers: names, terms of formulas, sources.

use vramscope_engine::format::{gib, grouped};
use vramscope_engine::report::derivation::{Basis, Formula, Quantity, Source, Term};
use vramscope_engine::report::{Outside, Part};
use vramscope_engine::tape::{Component, Kind};
use vramscope_engine::units::Bytes;

use super::{component, kind, part, phase};
use crate::i18n::{Words, t_string};

/// Name of a number.
pub fn quantity(i18n: Words, quantity: &Quantity) -> String {
    use Quantity as Q;
    match quantity {
        Q::PeakAllocated => t_string!(i18n, numbers.allocated).to_string(),
        Q::PhasePeak(p) => t_string!(i18n, derivation.phase_peak, phase = phase(i18n, *p)).to_string(),
        Q::Kind(k) => kind(i18n, *k),
        Q::Row(path) => row(i18n, path),
        Q::Live(_) => t_string!(i18n, derivation.live).to_string(),
        Q::Tensor(..) => t_string!(i18n, derivation.tensor).to_string(),
        Q::PeakReserved => t_string!(i18n, numbers.reserved).to_string(),
        Q::Reserve => part(i18n, Part::Reserve),
        Q::OutsideTorch => t_string!(i18n, numbers.outside).to_string(),
        Q::Outside(name) => part(i18n, Part::Outside(*name)),
        Q::Needed => t_string!(i18n, derivation.needed).to_string(),
        Q::Room => t_string!(i18n, derivation.room).to_string(),
        Q::Spare => t_string!(i18n, derivation.spare).to_string(),
        Q::Short => t_string!(i18n, derivation.short).to_string(),
        Q::Params => t_string!(i18n, numbers.params).to_string(),
        Q::PartParams(c) => t_string!(i18n, derivation.part_params, part = component(i18n, *c)).to_string(),
        Q::Trainable => t_string!(i18n, numbers.trainable).to_string(),
        Q::PartTrainable(c) => t_string!(i18n, derivation.part_trainable, part = component(i18n, *c)).to_string(),
        Q::Positions => t_string!(i18n, numbers.positions).to_string(),
        Q::ImageTokens => t_string!(i18n, numbers.image_tokens).to_string(),
        Q::Logits => t_string!(i18n, numbers.logits).to_string(),
        Q::AfterModel => t_string!(i18n, numbers.after_model).to_string(),
        Q::WithOutputs => t_string!(i18n, numbers.with_outputs).to_string(),
        Q::Cache => t_string!(i18n, numbers.cache).to_string(),
        Q::Change => t_string!(i18n, derivation.change).to_string(),
        Q::Changed(of) => t_string!(i18n, derivation.changed, what = self::quantity(i18n, of)),
    }
}

/// Name of a row of the breakdown. Components and kinds are translated; layers and tensors keep their names in code.
pub fn row(i18n: Words, path: &[String]) -> String {
    let Some(name) = path.last() else { return String::new() };
    match path.len() {
        1 => Component::ALL
            .into_iter()
            .find(|c| c.label() == name)
            .map(|c| component(i18n, c)),
        2 => Kind::ALL.into_iter().find(|k| k.label() == name).map(|k| kind(i18n, k)),
        3 if name.is_empty() => Some(t_string!(i18n, breakdown.whole_model).to_string()),
        _ => None,
    }
    .unwrap_or_else(|| name.clone())
}

/// Name of a term of a formula.
pub fn term(i18n: Words, term: &Term) -> String {
    match term {
        Term::Of(of) => quantity(i18n, of),
        Term::Live(k) => kind(i18n, *k),
        Term::Extent => t_string!(i18n, derivation.shape).to_string(),
        Term::Width(dtype) => t_string!(i18n, derivation.width, dtype = dtype.name()).to_string(),
        Term::PerByte => t_string!(i18n, derivation.per_byte).to_string(),
        Term::Alike => t_string!(i18n, derivation.alike).to_string(),
        Term::Asked => t_string!(i18n, derivation.asked).to_string(),
        Term::Slack => t_string!(i18n, derivation.slack).to_string(),
        Term::Weights(name) => name.clone(),
        Term::Segments => t_string!(i18n, derivation.segments).to_string(),
        Term::Segment => t_string!(i18n, derivation.segment).to_string(),
        Term::Multiprocessors => t_string!(i18n, derivation.multiprocessors).to_string(),
        Term::Threads => t_string!(i18n, derivation.threads).to_string(),
        Term::PerThread => t_string!(i18n, derivation.per_thread).to_string(),
        Term::Seen => t_string!(i18n, derivation.seen).to_string(),
        Term::Stated => t_string!(i18n, derivation.stated).to_string(),
        Term::Limit => t_string!(i18n, derivation.limit).to_string(),
        Term::Samples => t_string!(i18n, derivation.samples).to_string(),
        Term::Positions => t_string!(i18n, derivation.positions).to_string(),
        Term::Images => t_string!(i18n, derivation.images).to_string(),
        Term::TokensPerImage => t_string!(i18n, derivation.tokens_per_image).to_string(),
    }
}

/// Formats a formula in words.
pub fn symbols(i18n: Words, formula: &Formula) -> String {
    match formula {
        Formula::Number(what, _) => term(i18n, what),
        Formula::Sum(parts) if parts.len() > 3 => long_sum(i18n, parts),
        Formula::Sum(parts) => joined(parts, " + ", |part| symbols(i18n, part)),
        Formula::Product(parts) => {
            let mut factors: Vec<String> = parts.iter().map(|part| factor(part, symbols(i18n, part))).collect();
            // The dimensions of a shape share one name, so they merge into one factor.
            factors.dedup();
            factors.join(" × ")
        }
        Formula::Difference(of) => joined(&of[..], " − ", |part| symbols(i18n, part)),
        Formula::Highest(parts) => t_string!(i18n, derivation.highest_of, n = parts.len().to_string()).to_string(),
        Formula::RoundedUp(of, to) => {
            let (what, to) = (symbols(i18n, of), grouped(*to));
            t_string!(i18n, derivation.rounded, what = what, to = to).to_string()
        }
    }
}

/// Formats a long sum; products that read alike are written once, after Σ.
fn long_sum(i18n: Words, parts: &[Formula]) -> String {
    let first = parts.first().map(|part| symbols(i18n, part)).unwrap_or_default();
    let is_product = parts.iter().all(|part| matches!(part, Formula::Product(_)));
    match is_product && parts.iter().all(|part| symbols(i18n, part) == first) {
        true => format!("Σ ({first})"),
        false => t_string!(i18n, derivation.sum_of, n = parts.len().to_string()).to_string(),
    }
}

/// Formats a formula with its numbers.
pub fn numbers(i18n: Words, formula: &Formula) -> String {
    match formula {
        Formula::Number(_, n) => grouped(*n),
        Formula::Sum(parts) => joined(parts, " + ", |part| numbers(i18n, part)),
        Formula::Product(parts) => joined(parts, " × ", |part| factor(part, numbers(i18n, part))),
        Formula::Difference(of) => joined(&of[..], " − ", |part| numbers(i18n, part)),
        Formula::Highest(parts) => format!("max({})", joined(parts, ", ", |part| numbers(i18n, part))),
        Formula::RoundedUp(of, to) => {
            let (what, to) = (numbers(i18n, of), grouped(*to));
            t_string!(i18n, derivation.rounded, what = what, to = to).to_string()
        }
    }
}

fn joined(parts: &[Formula], sign: &str, text: impl Fn(&Formula) -> String) -> String {
    parts.iter().map(text).collect::<Vec<_>>().join(sign)
}

/// Puts a sum in brackets if it is a factor.
fn factor(part: &Formula, text: String) -> String {
    match part {
        Formula::Sum(_) | Formula::Difference(_) | Formula::RoundedUp(..) => format!("({text})"),
        _ => text,
    }
}

/// Source of a formula.
pub fn source(i18n: Words, source: &Source) -> String {
    match source {
        Source::Step => t_string!(i18n, derivation.source_step).to_string(),
        Source::Blocks => t_string!(i18n, derivation.source_blocks).to_string(),
        Source::Segments => t_string!(i18n, derivation.source_segments).to_string(),
        Source::Config => t_string!(i18n, derivation.source_config).to_string(),
        Source::Setup => t_string!(i18n, derivation.source_setup).to_string(),
        Source::Sum => t_string!(i18n, derivation.source_sum).to_string(),
        Source::Outside(Outside::CudaContext, _) => t_string!(i18n, derivation.source_context).to_string(),
        Source::Outside(Outside::CudaKernels, _) => t_string!(i18n, derivation.source_kernels).to_string(),
        Source::Outside(Outside::Display, _) => t_string!(i18n, derivation.source_display).to_string(),
        Source::Outside(Outside::Nccl, _) => t_string!(i18n, derivation.source_nccl).to_string(),
        Source::Outside(Outside::Vllm, _) => t_string!(i18n, derivation.source_vllm).to_string(),
        Source::Document(title) => title.clone(),
    }
}

/// Certainty of a number.
pub fn basis(i18n: Words, basis: &Basis) -> String {
    match basis {
        Basis::Simulated => t_string!(i18n, derivation.basis_simulated).to_string(),
        Basis::Counted => t_string!(i18n, derivation.basis_counted).to_string(),
        Basis::Entered => t_string!(i18n, derivation.basis_entered).to_string(),
        Basis::Stated => t_string!(i18n, derivation.basis_stated).to_string(),
        Basis::Measured => t_string!(i18n, derivation.basis_measured).to_string(),
        Basis::Estimated(range) => {
            let [low, high] = range.map(|bytes| gib(Bytes::new(bytes)));
            t_string!(i18n, derivation.basis_estimated, low = low, high = high).to_string()
        }
    }
}
