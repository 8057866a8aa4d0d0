//! Linear layers and parameters that peft puts adapters on (`peft/utils/transformers_weight_conversion.py`).

use super::{ExpertAdapters, MapPlace, Targets};

/// Names that experts had in transformers 4 as linear layers, by which peft 0.21 finds the fused weights that take their
/// place in transformers 5 (`_MOE_TARGET_MODULE_MAPPING`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerNames {
    /// `w1`, `w3` and `w2`, and `gate` for the router.
    Mixtral,
    /// `gate_proj`, `up_proj` and `down_proj`, and `gate` for the router.
    Qwen2Moe,
}

impl FormerNames {
    /// Former names and the parameters that have their weights now.
    const fn now(self) -> [(&'static str, &'static str); 4] {
        match self {
            Self::Mixtral => [("gate", ROUTER), ("w1", GATE_UP), ("w3", GATE_UP), ("w2", DOWN)],
            Self::Qwen2Moe => [
                ("gate", ROUTER),
                ("gate_proj", GATE_UP),
                ("up_proj", GATE_UP),
                ("down_proj", DOWN),
            ],
        }
    }
}

const GATE_UP: &str = "gate_up_proj";
const ROUTER: &str = "gate.weight";
const DOWN: &str = "down_proj";

/// Targets of adapters in a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterPlaces {
    /// Targets of the setup.
    pub targets: Targets,
    /// Fused weights of experts that are targets beside them.
    pub experts: ExpertAdapters,
    /// Former names of experts in the model, if peft knows its `model_type`.
    pub former: Option<FormerNames>,
}

/// Parameters that get adapters by their names (`target_parameters`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameters(Vec<(&'static str, u64)>);

impl Parameters {
    /// Multiple of the rank for the parameter at this dotted path; `None` if it gets no adapter.
    pub fn times_of(&self, path: &str) -> Option<u64> {
        let found = self.0.iter().find(|(name, _)| ends(path, name));
        found.map(|(_, times)| *times)
    }
}

fn ends(path: &str, name: &str) -> bool {
    let rest = path.strip_suffix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

impl AdapterPlaces {
    /// Returns true if the linear layer at this dotted path, in this place, gets an adapter: none whose name was an
    /// expert's, since peft takes such names for parameters alone.
    pub(crate) fn take_map(&self, path: &str, place: MapPlace) -> bool {
        let Some(former) = self.former else {
            return self.targets.take(path, place);
        };
        let was_expert = |name: &str| former.now().iter().any(|(old, _)| ends(name, old));
        match &self.targets {
            Targets::Named(names) => names.iter().any(|name| !was_expert(name) && ends(path, name)),
            others => !was_expert(path) && others.take(path, place),
        }
    }

    /// Parameters that get adapters in a model with these linear layers.
    pub(crate) fn parameters(&self, maps: &[String]) -> Parameters {
        let named = self.former_names(maps);
        let mut found: Vec<(&'static str, u64)> = Vec::new();
        for (_, parameter) in named {
            match found.iter_mut().find(|(known, _)| *known == parameter) {
                // Two names of one parameter: peft doubles its rank.
                Some((_, times)) => *times += 1,
                None => found.push((parameter, 1)),
            }
        }
        if self.experts == ExpertAdapters::All {
            for parameter in [GATE_UP, DOWN] {
                if found.iter().all(|(known, _)| *known != parameter) {
                    found.push((parameter, 1));
                }
            }
        }
        Parameters(found)
    }

    /// Returns true if routers get adapters by their former name.
    pub(crate) fn take_routers(&self) -> bool {
        self.former_names(&[]).iter().any(|(_, parameter)| *parameter == ROUTER)
    }

    /// Former names among the targets, and their parameters.
    fn former_names(&self, maps: &[String]) -> Vec<(&'static str, &'static str)> {
        let all = self.former.map(FormerNames::now);
        let is_target = |old: &str| match &self.targets {
            Targets::AllLinear => true,
            Targets::Attention => false,
            // A pattern of Llama's names, which is tried on parameters too.
            Targets::Projections => self.former == Some(FormerNames::Qwen2Moe) && old != "gate",
            // A list of the names of maps that are there.
            Targets::LanguageModel => maps.iter().any(|path| ends(path, old)),
            Targets::Named(names) => names.iter().any(|name| ends(name, old)),
        };
        all.into_iter().flatten().filter(|(old, _)| is_target(old)).collect()
    }

    /// A target that peft refuses because another, with which it is fused, is not one: both names.
    pub fn half_of_fused(&self) -> Option<[&'static str; 2]> {
        let Targets::Named(_) = &self.targets else { return None };
        let [_, first, second, _] = self.former?.now();
        let named = self.former_names(&[]);
        match [first, second].map(|pair| named.contains(&pair)) {
            [true, false] => Some([first.0, second.0]),
            [false, true] => Some([second.0, first.0]),
            _ => None,
        }
    }

    /// Returns true if a linear layer with the name of a router gets an adapter.
    pub fn takes_router(&self) -> bool {
        match &self.targets {
            Targets::Projections | Targets::Attention => false,
            Targets::AllLinear | Targets::LanguageModel => true,
            Targets::Named(names) => names.iter().any(|name| ends(name, "router")),
        }
    }

    /// Returns true if fused weights or routers may get adapters.
    pub fn may_take_parameters(&self) -> bool {
        self.experts == ExpertAdapters::All
            || match &self.targets {
                Targets::LanguageModel => self.former.is_some(),
                _ => !self.former_names(&[]).is_empty(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(targets: &str, experts: ExpertAdapters, former: Option<FormerNames>) -> AdapterPlaces {
        AdapterPlaces {
            targets: Targets::parse(targets).unwrap(),
            experts,
            former,
        }
    }

    /// What peft 0.21 makes of targets in models of transformers 5.17, as it was run.
    #[test]
    fn former_names_of_experts_stand_for_fused_weights() {
        use FormerNames::{Mixtral, Qwen2Moe};
        let of = |targets: &str, former| {
            let found = places(targets, ExpertAdapters::Targets, former).parameters(&[]);
            ["experts.gate_up_proj", "experts.down_proj", "mlp.gate.weight"].map(|path| found.times_of(path))
        };
        assert_eq!(of("all-linear", Some(Qwen2Moe)), [Some(2), Some(1), Some(1)]);
        assert_eq!(of("all-linear", Some(Mixtral)), [Some(2), Some(1), Some(1)]);
        assert_eq!(of("projections", Some(Qwen2Moe)), [Some(2), Some(1), None]);
        assert_eq!(of("projections", Some(Mixtral)), [None; 3]);
        assert_eq!(of("q_proj,w1,w3", Some(Mixtral)), [Some(2), None, None]);
        assert_eq!(of("q_proj,down_proj", Some(Qwen2Moe)), [None, Some(1), None]);
        assert_eq!(of("attention", Some(Qwen2Moe)), [None; 3]);
        assert_eq!(of("all-linear", None), [None; 3]);
        let beside = |path: &str| {
            let all = places("attention", ExpertAdapters::All, None);
            all.parameters(&[]).times_of(path)
        };
        assert_eq!(
            [beside("mlp.experts.down_proj"), beside("mlp.down_proj.weight")],
            [Some(1), None]
        );
    }

    #[test]
    fn maps_with_the_name_of_an_expert_get_no_adapter_of_their_own() {
        let takes = |former| {
            let places = places("all-linear", ExpertAdapters::Targets, former);
            places.take_map("model.layers.0.mlp.gate_proj", MapPlace::Projection)
        };
        assert!(takes(None) && !takes(Some(FormerNames::Qwen2Moe)));
    }

    #[test]
    fn half_of_a_fused_weight_is_refused() {
        let half = |targets: &str| places(targets, ExpertAdapters::Targets, Some(FormerNames::Mixtral)).half_of_fused();
        assert_eq!(half("w1,w2"), Some(["w1", "w3"]));
        assert_eq!(half("w3"), Some(["w3", "w1"]));
        assert_eq!([half("w1,w3"), half("w2"), half("all-linear")], [None; 3]);
    }
}
