//! Short names and ids of records.

/// Maximum length of a name in a chart, in characters.
const LONGEST: usize = 22;

/// Shortens card names: long ones are truncated, equal ones numbered.
pub fn short_names(names: &[&str]) -> Vec<String> {
    let cut = |name: &str| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", name[..end].trim_end()),
        None => name.to_owned(),
    };
    let all: Vec<String> = names.iter().map(|name| cut(name)).collect();
    let numbered = |(place, name): (usize, &String)| {
        let same = |others: &[String]| others.iter().filter(|other| *other == name).count();
        match same(&all) {
            1 => name.clone(),
            _ => format!("{name} #{}", same(&all[..place]) + 1),
        }
    };
    all.iter().enumerate().map(numbered).collect()
}

/// Returns true if the text is the id of a published record.
pub fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let long = "llvmpipe (LLVM 19.1.7, 256 bits)";
        assert_eq!(
            short_names(&["NVIDIA H200", long, "NVIDIA H200"]),
            ["NVIDIA H200 #1", "llvmpipe (LLVM 19.1.7,…", "NVIDIA H200 #2"]
        );
        assert_eq!(short_names(&["显卡显卡"]), ["显卡显卡"]);
    }

    #[test]
    fn an_id_is_a_digest() {
        assert!(is_id(&"0a".repeat(32)));
        assert!(!is_id(&"0A".repeat(32)) && !is_id("") && !is_id(&"../".repeat(21)));
    }
}
