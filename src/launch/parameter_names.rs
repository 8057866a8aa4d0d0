//! Names of parameters that tools freeze and train, as the patterns of a setup.

use regex_lite::escape;

/// Patterns of names that begin with one of these (`n.startswith(p)` of ms-swift).
///
/// transformers 4.52 put `model.` before the names of a vision-language model's parts; a prefix of before, such as `visual`,
/// means the same parameters.
pub(crate) fn beginning_with(prefixes: &[String]) -> Vec<String> {
    let pattern = |prefix: &String| match prefix.starts_with("model.") || prefix == "model" {
        true => format!("^{}", escape(prefix)),
        false => format!(r"^(model\.)?{}", escape(prefix)),
    };
    prefixes.iter().map(pattern).collect()
}

/// Patterns of axolotl's `unfrozen_parameters`: full stops are themselves, a name is matched from its beginning, and rows in
/// brackets at the end train with the whole parameter, whose gradient is zeroed elsewhere (`axolotl/utils/freeze.py`).
pub(crate) fn unfrozen(given: &[String]) -> Vec<String> {
    let pattern = |given: &String| {
        let mut plain = String::from("^(?:");
        let mut rest = without_rows(given).chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '.' if rest.peek() != Some(&'+') => plain.push_str(r"\."),
                '\\' => {
                    plain.push('\\');
                    plain.extend(rest.next());
                }
                c => plain.push(c),
            }
        }
        plain + ")"
    };
    given.iter().map(pattern).collect()
}

/// A pattern without `[10]`, `[:10]` or `[10:20]` at its end.
fn without_rows(pattern: &str) -> &str {
    let inside = pattern.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    match inside {
        Some((before, rows)) if !before.is_empty() && rows.chars().all(|c| c.is_ascii_digit() || c == ':') => before,
        _ => pattern,
    }
}

#[cfg(test)]
mod tests {
    use regex_lite::Regex;

    use super::*;

    fn finds(patterns: &[String], name: &str) -> bool {
        patterns
            .iter()
            .any(|pattern| Regex::new(pattern).unwrap().is_match(name))
    }

    #[test]
    fn prefixes_are_of_transformers_4_and_5() {
        let visual = beginning_with(&["visual.merger".into()]);
        assert!(finds(&visual, "model.visual.merger.ln_q.weight") && finds(&visual, "visual.merger.ln_q.weight"));
        assert!(!finds(&visual, "model.visual_merger.weight") && !finds(&visual, "tower.visual.merger.weight"));
        let blocks = beginning_with(&["model.layers.1".into()]);
        assert!(finds(&blocks, "model.layers.10.mlp.up_proj.weight") && !finds(&blocks, "model.model.layers.1.mlp"));
    }

    #[test]
    fn unfrozen_names_are_read_as_axolotl_reads_them() {
        let names = unfrozen(&["^lm_head.weight$".into(), "model.embed_tokens.weight$[:32000]".into()]);
        assert!(finds(&names, "lm_head.weight") && finds(&names, "model.embed_tokens.weight"));
        assert!(!finds(&names, "lm_headxweight") && !finds(&names, "model.lm_head.weight"));
        let blocks = unfrozen(&["model.layers.2[0-9]+.mlp".into()]);
        assert!(finds(&blocks, "model.layers.21.mlp.up_proj.weight"));
        assert!(!finds(&blocks, "model.layers.2.mlp.up_proj.weight"));
    }
}
