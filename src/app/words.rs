//! Translates the engine's terms, and errors in entries, for the page.

mod amount;
mod derivation;
mod labels;
mod refusal;

pub use amount::{count, tensors};
pub use derivation::{basis, numbers, quantity, row, source, symbols};
pub use refusal::{refusal, setup as setup_refusal, way_out};

use vramscope_engine::attention::Algorithm;
use vramscope_engine::format::gib;
use vramscope_engine::report::{Outside, Part, Phase, SegmentLayout, Warning};
use vramscope_engine::setup::{Kind as Form, Strategy};
use vramscope_engine::tape::{Component, Kind, Why};

use crate::i18n::{Words, phrases, t_string};
use crate::state::{FieldError, Key, Problem};
use crate::worker::view::Card;

/// Name of a kind of tensor.
pub fn kind(i18n: Words, kind: Kind) -> String {
    match kind {
        Kind::Weight => t_string!(i18n, kind.weight).to_string(),
        Kind::Gradient => t_string!(i18n, kind.gradient).to_string(),
        Kind::OptimizerState => t_string!(i18n, kind.optimizer_state).to_string(),
        Kind::Activation => t_string!(i18n, kind.activation).to_string(),
        Kind::Temporary => t_string!(i18n, kind.temporary).to_string(),
        Kind::Workspace => t_string!(i18n, kind.workspace).to_string(),
        Kind::Input => t_string!(i18n, kind.input).to_string(),
    }
}

/// Name of a component of the model.
pub fn component(i18n: Words, component: Component) -> String {
    match component {
        Component::VisionTower => t_string!(i18n, component.vision_tower).to_string(),
        Component::Connector => t_string!(i18n, component.connector).to_string(),
        Component::LanguageModel => t_string!(i18n, component.language_model).to_string(),
        Component::Head => t_string!(i18n, component.head).to_string(),
        Component::Run => t_string!(i18n, component.run).to_string(),
    }
}

/// Name of a phase of the step.
pub fn phase(i18n: Words, phase: Phase) -> String {
    match phase {
        Phase::Forward => t_string!(i18n, phase.forward).to_string(),
        Phase::Backward => t_string!(i18n, phase.backward).to_string(),
        Phase::Optimizer => t_string!(i18n, phase.optimizer).to_string(),
    }
}

/// Name of a part of a run's memory on the card.
pub fn part(i18n: Words, part: Part) -> String {
    match part {
        Part::Live(k) => kind(i18n, k),
        Part::Reserve => t_string!(i18n, part.reserve).to_string(),
        Part::Outside(Outside::CudaContext) => t_string!(i18n, part.cuda_context).to_string(),
        Part::Outside(Outside::CudaKernels) => t_string!(i18n, part.cuda_kernels).to_string(),
        Part::Outside(Outside::Display) => t_string!(i18n, part.display).to_string(),
        Part::Outside(Outside::Nccl) => t_string!(i18n, part.nccl).to_string(),
        Part::Outside(Outside::Vllm) => t_string!(i18n, part.vllm).to_string(),
    }
}

/// Name of a card, with the number of such cards that share the run, and the memory limit if one is set.
pub fn card(i18n: Words, card: &Card) -> String {
    let name = match card.gpus {
        1 => card.name.clone(),
        gpus => format!("{gpus} × {}", card.name),
    };
    match card.limit {
        Some(limit) => t_string!(i18n, verdict.limited, card = name, limit = gib(limit)),
        None => name,
    }
}

/// Reserved bytes and the segment layout that leads to them.
pub fn reserved(i18n: Words, layout: SegmentLayout, bytes: String) -> String {
    match layout {
        SegmentLayout::FreshProcess => t_string!(i18n, reserved.fresh_process, bytes = bytes).to_string(),
        SegmentLayout::UsedProcess => t_string!(i18n, reserved.used_process, bytes = bytes).to_string(),
        SegmentLayout::DrawnOrder => t_string!(i18n, reserved.drawn_order, bytes = bytes).to_string(),
        SegmentLayout::ManyLengths => t_string!(i18n, reserved.many_lengths, bytes = bytes).to_string(),
    }
}

/// Reason why a tensor is alive.
pub fn why(i18n: Words, why: Why) -> String {
    let message = why.words();
    match why {
        Why::InUse => t_string!(i18n, why.in_use, message = message).to_string(),
        Why::Batch => t_string!(i18n, why.batch, message = message).to_string(),
        Why::HeldBy(name) => t_string!(i18n, why.held_by, message = message, name = name).to_string(),
        Why::NeededBy(node) => t_string!(i18n, why.needed_by, message = message, node = node).to_string(),
        Why::BlockInput => t_string!(i18n, why.block_input, message = message).to_string(),
        Why::Parameter => t_string!(i18n, why.parameter, message = message).to_string(),
        Why::Buffer => t_string!(i18n, why.buffer, message = message).to_string(),
        Why::Adapter => t_string!(i18n, why.adapter, message = message).to_string(),
        Why::MovingAverage => t_string!(i18n, why.moving_average, message = message).to_string(),
        Why::Gradient => t_string!(i18n, why.gradient, message = message).to_string(),
        Why::State => t_string!(i18n, why.state, message = message).to_string(),
        Why::ParameterSize => t_string!(i18n, why.parameter_size, message = message).to_string(),
        Why::StepCount => t_string!(i18n, why.step_count, message = message).to_string(),
        Why::QuantisationMap => t_string!(i18n, why.quantisation_map, message = message).to_string(),
        Why::AutocastCopy => t_string!(i18n, why.autocast_copy, message = message).to_string(),
        Why::Library => t_string!(i18n, why.library, message = message).to_string(),
    }
}

/// Label of an entry.
pub fn label(i18n: Words, key: Key) -> String {
    let place = match key {
        Key::Recording => phrases::nav::recorded,
        Key::Sizes => phrases::recorded::sizes_title,
        Key::Compare => phrases::compare::title,
        Key::Open => phrases::recommend::open,
        Key::Cards => phrases::sweep::cards,
        Key::Lang => phrases::header::language,
        Key::Theme => phrases::header::theme,
        key => match phrases::setup::named(key.name()) {
            Some(place) => place,
            None => return key.name().to_owned(),
        },
    };
    i18n.phrase(place).to_owned()
}

/// Explains an entry in one sentence; `None` for the page's own settings.
pub fn help(i18n: Words, key: Key) -> Option<String> {
    let place = phrases::help::named(key.name())?;
    Some(i18n.phrase(place).to_owned())
}

/// Label of a choice; falls back to its library's name for it, or to the value itself.
pub fn choice(i18n: Words, key: Key, value: &str) -> String {
    if key == Key::Sweep {
        return Key::named(value).map_or_else(|| value.to_owned(), |key| label(i18n, key));
    }
    let name = format!("{}_{}", key.name(), value.replace('-', "_"));
    match phrases::choice::named(&name) {
        Some(place) => i18n.phrase(place).to_owned(),
        None => title(key, value).unwrap_or(value).to_owned(),
    }
}

/// Name of a choice in its library.
fn title(key: Key, value: &str) -> Option<&'static str> {
    match key {
        Key::Setting(setting) => match setting.declaration().kind {
            Form::Choice(choices) => choices.title_of(value),
            _ => None,
        },
        Key::Strategy => Strategy::CHOICES.title_of(value),
        _ => None,
    }
}

/// Name of an attention algorithm.
pub fn algorithm(i18n: Words, algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::Standard => t_string!(i18n, attention.standard).to_string(),
        Algorithm::Flash => "FlashAttention 2".into(),
        Algorithm::Efficient => t_string!(i18n, attention.efficient).to_string(),
        Algorithm::Cudnn => "cuDNN".into(),
        Algorithm::Sliding => t_string!(i18n, attention.sliding).to_string(),
        Algorithm::TopK => t_string!(i18n, attention.top_k).to_string(),
        Algorithm::Chunked => t_string!(i18n, attention.chunked).to_string(),
    }
}

/// Error message of an entry: the given text, the allowed values and the replacement in use.
pub fn field_error(i18n: Words, error: &FieldError) -> String {
    let given: String = error.given.chars().take(40).collect();
    let used = match error.used.as_str() {
        "" => t_string!(i18n, problem.the_default).to_string(),
        used => used.to_owned(),
    };
    match error.problem {
        Problem::NotCount => t_string!(i18n, problem.not_count, given = given, used = used).to_string(),
        Problem::TooLarge => t_string!(i18n, problem.too_large, given = given, used = used).to_string(),
        Problem::NotGrid => t_string!(i18n, problem.not_grid, given = given, used = used).to_string(),
        Problem::NotLengths => t_string!(i18n, problem.not_lengths, given = given, used = used).to_string(),
        Problem::NotSizes => t_string!(i18n, problem.not_sizes, given = given, used = used).to_string(),
        Problem::NotProbability => t_string!(i18n, problem.not_probability, given = given, used = used).to_string(),
        Problem::NotNamedCounts => t_string!(i18n, problem.not_named_counts, given = given, used = used).to_string(),
        Problem::NotAmount => t_string!(i18n, problem.not_amount, given = given, used = used).to_string(),
        Problem::NotRate => t_string!(i18n, problem.not_rate, given = given, used = used).to_string(),
        Problem::NotGib => t_string!(i18n, problem.not_gib, given = given, used = used).to_string(),
        Problem::NotSetups => t_string!(i18n, problem.not_setups, given = given, used = used).to_string(),
        Problem::NotZero => t_string!(i18n, problem.not_zero, given = given, used = used).to_string(),
        Problem::NotSwitch => t_string!(i18n, problem.not_switch, given = given, used = used).to_string(),
        Problem::NotParameterNames => {
            t_string!(i18n, problem.not_parameter_names, given = given, used = used).to_string()
        }
        Problem::NotTargets(words) => {
            let allowed = words.join(", ");
            t_string!(i18n, problem.not_targets, given = given, used = used, allowed = allowed).to_string()
        }
        Problem::NotChoice(allowed) => {
            let allowed = allowed.join(", ");
            t_string!(i18n, problem.not_choice, given = given, used = used, allowed = allowed).to_string()
        }
    }
}

/// Text of a warning. English, and any warning without a translation yet, uses the engine's own text.
pub fn warning(i18n: Words, warning: &Warning) -> String {
    labels::with_labels(i18n, &plain_warning(i18n, warning))
}

fn plain_warning(i18n: Words, warning: &Warning) -> String {
    let message = warning.message.clone();
    let arg = |name: &str| {
        let found = warning.args.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    // The phrase's placeholders have the names of the warning's arguments.
    macro_rules! phrase {
        ($key:ident $(, $name:ident)*) => {
            t_string!(i18n, warning.$key, message = message $(, $name = arg(stringify!($name)))*)
        };
    }
    match &*warning.code {
        "compiled" => phrase!(
            compiled,
            eager,
            families,
            high,
            least,
            low,
            most,
            steps,
            usual_least,
            usual_most
        ),
        "sizes-are-defaults" => phrase!(sizes_are_defaults, sections, sizes),
        "some-sizes-are-defaults" => phrase!(some_sizes_are_defaults, sizes),
        "vllm" => phrase!(vllm),
        "generic-decoder" => phrase!(generic_decoder, model),
        "absent-packages" => phrase!(absent_packages, model, packages),
        "unrecorded-package" => phrase!(unrecorded_package, model, package),
        "dequantised" => phrase!(dequantised, model),
        "partial-sums" => phrase!(partial_sums, model),
        "optimizer-holds-peak" => phrase!(optimizer_holds_peak, temporaries, others),
        "logits" => phrase!(logits, bytes),
        "logits-kept" => phrase!(logits_kept, bytes),
        "attention-matrices" => phrase!(attention_matrices, bytes),
        "autocast-copies" => phrase!(autocast_copies, bytes),
        "frozen-is-not-free" => phrase!(frozen_is_not_free, bytes),
        "frozen-tower-keeps-graph" => phrase!(frozen_tower_keeps_graph, bytes),
        "beyond-rotary" => phrase!(beyond_rotary, positions, seq),
        "recording-one-step" => phrase!(recording_one_step),
        "recording-no-update" => phrase!(recording_no_update),
        "recording-other-pytorch" => phrase!(recording_other_pytorch, version, rules),
        "recording-unknown-workspace" => phrase!(recording_unknown_workspace, operations, count),
        "recording-untimed" => phrase!(recording_untimed, operations, count),
        "recording-assumed" => phrase!(recording_assumed, what, how, count),
        "paged-states" => phrase!(paged_states, bytes),
        "stages" => phrase!(stages, most, others),
        "streams" => phrase!(streams),
        "names-match-nothing" => phrase!(names_match_nothing, names, patterns),
        "scaler-skips" => phrase!(scaler_skips, states),
        "fragmentation" => phrase!(fragmentation, bytes),
        "first-step-is-higher" => phrase!(first_step_is_higher, first, steady),
        _ => message,
    }
}
