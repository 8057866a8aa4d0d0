//! Assigns modules to components of a model by their names and classes.

use super::marks::RecordedStep;
use super::tables::Module;
use crate::report::Phase;
use crate::tape::log::{Event, Log, Scope, ScopeId};
use crate::tape::{Component, Kind};

/// Names of modules in transformers, timm and torchvision that mark a component. Segments of a module's path must
/// equal them to match.
const PARTS: &[(Component, &[&str])] = &[
    (
        Component::Connector,
        &[
            "projector",
            "connector",
            "merger",
            "qformer",
            "aligner",
            "perceiver",
            "resampler",
            "multimodal_projector",
            "multi_modal_projector",
            "language_projection",
            "image_projection",
            "visual_projection",
            "vision_embed_tokens",
            "embed_vision",
            "embed_audio",
            "abstractor",
            "mlp1",
        ],
    ),
    (
        Component::Head,
        &[
            "lm_head",
            "classifier",
            "score",
            "logit_scale",
            "cls",
            "fc_norm",
            "qa_outputs",
            "class_head",
        ],
    ),
    (
        Component::VisionTower,
        &[
            "vision_tower",
            "vision_model",
            "visual",
            "vision_encoder",
            "vision_embeddings",
            "vision_backbone",
            "image_encoder",
            "image_tower",
            "image_model",
            "video_tower",
            "vision",
            "vit",
            "videomae",
            "pixel_encoder",
        ],
    ),
    (
        Component::LanguageModel,
        &[
            "language_model",
            "text_model",
            "text_encoder",
            "text_decoder",
            "decoder",
            "transformer",
        ],
    ),
];

/// Returns the component of each module's scope.
pub(super) fn of(modules: &[Module]) -> Vec<(ScopeId, Component)> {
    let named = |path: &str| path.split('.').filter_map(component).fold(None, deepest);
    // A model that looks up no words is a tower.
    let reads = modules.iter().any(reads_words);
    let rest = if reads {
        Component::LanguageModel
    } else {
        Component::VisionTower
    };
    let component = |module: &Module| named(&module.path).unwrap_or(rest);
    modules.iter().map(|module| (module.scope, component(module))).collect()
}

/// Returns the component of a path given that of its parents: the deeper name decides, unless it only names a tower or
/// decoder again. Some models nest the connector in the tower, or a head beside the decoder.
fn deepest(above: Option<Component>, here: Component) -> Option<Component> {
    match (above, here) {
        (Some(above), Component::VisionTower | Component::LanguageModel) => Some(above),
        (Some(Component::VisionTower), Component::Head) => Some(Component::VisionTower),
        _ => Some(here),
    }
}

fn component(name: &str) -> Option<Component> {
    let is = |part: &&str| name == *part;
    let found = PARTS.iter().find(|(_, names)| names.iter().any(is));
    let within = || {
        let connects = ["projector", "connector", "merger", "resampler", "qformer"];
        connects
            .iter()
            .any(|part| name.contains(part))
            .then_some(Component::Connector)
    };
    found.map(|(component, _)| *component).or_else(within)
}

/// Returns true if a module looks up words.
fn reads_words(module: &Module) -> bool {
    let name = module.path.rsplit('.').next().unwrap_or_default();
    matches!(
        name,
        "embed_tokens" | "wte" | "word_embeddings" | "tok_embeddings" | "shared" | "token_embedding"
    ) || (&*module.class == "Embedding" && !name.contains("position"))
}

/// Assigns to the loss all memory that no module, or only the outermost, allocates between a head and its gradient, and
/// all that no module allocates from a forward's first operation to the end of its backward.
pub(super) fn name_losses(log: &mut Log, events: &[Event], steps: &[RecordedStep], root: Option<ScopeId>) {
    let loss = log.scopes.len() as ScopeId;
    log.scopes.push(Scope {
        parent: 0,
        name: "loss",
        index: None,
        component: Component::Head,
    });
    for step in steps {
        let ends = step.stretches.iter().skip(1).map(|(at, _)| *at).chain([step.end]);
        // Memory allocated before the first forward is the batch.
        for (&(begin, phase), end) in step.stretches.iter().zip(ends).skip(1) {
            let stretch = events.get(begin..end).unwrap_or_default();
            match phase {
                Phase::Forward => losses_after_head(log, stretch.iter(), (root, loss)),
                Phase::Backward => losses_after_head(log, stretch.iter().rev(), (root, loss)),
                Phase::Optimizer => {}
            }
        }
    }
}

/// Assigns losses in one direction of a pass: forward in order, backward from its end.
fn losses_after_head<'a>(
    log: &mut Log,
    events: impl Iterator<Item = &'a Event>,
    (root, loss): (Option<ScopeId>, ScopeId),
) {
    let mut after_head = false;
    for event in events.filter(|event| event.is_alloc()) {
        let scope = log.allocations[event.storage() as usize].scope;
        after_head |= log.scopes[scope as usize].component == Component::Head && scope != loss;
        let allocation = log.allocations.own(event.storage());
        let outside = scope == 0 || after_head && Some(scope) == root;
        if outside && !matches!(allocation.kind, Kind::Workspace | Kind::Input) {
            allocation.scope = loss;
        }
    }
}
