//! Models that are known by name and not simulated, so that a message can say what they are and what answers.

use super::aliases;
use super::error::HubError;
use super::repository::Repository;
use super::variants::{Shape, split};

/// Models that are known by name and not simulated: id, and what is not.
const NOT_SIMULATED: &str = include_str!("not_simulated.tsv");

/// What is not simulated of each model that is known, in English.
pub fn reasons() -> impl Iterator<Item = &'static str> {
    NOT_SIMULATED.lines().filter_map(|line| Some(line.split_once('\t')?.1))
}

/// Why a model that is known is not simulated; `None` for others.
pub fn not_simulated(given: &str) -> Option<HubError> {
    let id = aliases::find(given).map_or(given, |(_, id)| id);
    let repository = Repository::parse(id).map(|of| of.id);
    let id = repository.as_deref().unwrap_or(id);
    let (owner, name) = id.rsplit_once('/').unwrap_or(("", id));
    let (rest, shape, _) = split(owner, name);
    let mut rows = NOT_SIMULATED.lines().filter_map(|line| line.split_once('\t'));
    let (known, why) = rows.find(|(known, _)| {
        let of = known.rsplit('/').next().unwrap_or(known);
        of.eq_ignore_ascii_case(&rest) || Shape::of(of) == shape
    })?;
    Some(HubError::NotSimulated { id: known, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::known;

    #[test]
    fn what_is_known_and_not_simulated_says_what_answers() {
        for given in [
            "openbmb/MiniCPM-o-2_6",
            "/models/MiniCPM-o-2_6-int4",
            "moonshotai/Kimi-VL-A3B-Instruct",
            "unsloth/gemma-3n-E2B-it-unsloth-bnb-4bit",
            "google/gemma-3n-E4B",
            "deepseek-ai/deepseek-vl2",
        ] {
            let why = not_simulated(given).unwrap_or_else(|| panic!("{given}")).to_string();
            assert!(
                why.contains("vramscope record --model") && why.contains("dry-run"),
                "{why}"
            );
        }
        assert_eq!(not_simulated("Qwen/Qwen3-8B"), None);
        // A row goes once its model is simulated.
        for line in NOT_SIMULATED.lines() {
            let (id, _) = line.split_once('\t').expect("a row has two cells");
            assert_eq!(known(id).map(|known| known.name), None);
        }
    }
}
