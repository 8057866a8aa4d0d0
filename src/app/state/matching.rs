//! Matches what people type against names.

/// Rank of a name for what was typed, the smaller the better: the number of typed words that begin no part of the name.
/// `None` if a word is not in the name at all.
///
/// Case, spaces and punctuation do not count, so `qwen 2.5 vl`, `qwen2.5-vl` and `Qwen25VL` are the same. That is of ASCII,
/// which names of models and cards are; all other characters count as letters, and keep their case. Unicode's tables of
/// cases and letters are 19 KB of the program, uncompressed.
pub fn rank(typed: &str, name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let whole = folded(&name);
    let starts = starts(&name);
    let mut rank = 0;
    for word in typed
        .to_ascii_lowercase()
        .split_whitespace()
        .map(folded)
        .filter(|word| !word.is_empty())
    {
        if !whole.contains(&word) {
            return None;
        }
        rank += usize::from(!starts.iter().any(|&at| whole[at..].starts_with(&word)));
    }
    Some(rank)
}

/// What a page of a hub is about, `owner/name`, in place of its address; all else as it is.
pub fn without_host(typed: &str) -> &str {
    let typed = typed.trim();
    let bare = typed.strip_prefix("https://").or_else(|| typed.strip_prefix("http://"));
    let Some((host, path)) = bare.unwrap_or(typed).split_once('/') else {
        return typed;
    };
    let is_address = bare.is_some() || (host.contains('.') && path.contains('/'));
    let path = path.strip_prefix("models/").unwrap_or(path);
    let Some((owner, rest)) = path.split_once('/').filter(|_| is_address) else {
        return typed;
    };
    let name = rest.split(['/', '?', '#']).next().unwrap_or_default();
    &path[..owner.len() + 1 + name.len()]
}

/// Letters and digits alone.
fn folded(text: &str) -> String {
    text.chars().filter(|&c| is_letter(c) || c.is_ascii_digit()).collect()
}

/// Returns true for a letter of ASCII and for whatever is beyond ASCII.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || !c.is_ascii()
}

/// Positions in the folded name at which a part begins: after punctuation, and where digits follow letters, so that a size
/// such as `7b` begins a part, and `7b` of `27b` does not.
fn starts(name: &str) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    let mut before = ' ';
    for c in name.chars() {
        if is_letter(c) || c.is_ascii_digit() {
            if !before.is_ascii_digit() && (!is_letter(before) || c.is_ascii_digit()) {
                starts.push(at);
            }
            at += c.len_utf8();
        }
        before = c;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_people_type_them() {
        let name = "Qwen/Qwen2.5-VL-7B-Instruct";
        for typed in [
            "qwen 2.5 vl 7b",
            "qwen2.5-vl-7b",
            "Qwen25VL",
            "vl 7B qwen",
            "instruct",
            "",
        ] {
            assert_eq!(rank(typed, name), Some(0), "{typed}");
        }
        assert_eq!(rank("qwen 3", name), None);
    }

    #[test]
    fn a_size_comes_before_a_larger_one_that_ends_alike() {
        let of = |name| rank("gemma 7b", name);
        assert_eq!((of("google/gemma-7b"), of("google/gemma-2-27b")), (Some(0), Some(1)));
    }

    #[test]
    fn an_address_stands_for_the_name_in_it() {
        for (typed, name) in [
            ("https://huggingface.co/Qwen/Qwen3-8B/tree/main?x=1", "Qwen/Qwen3-8B"),
            ("hf.co/Qwen/Qwen3-8B#files", "Qwen/Qwen3-8B"),
            ("https://modelscope.cn/models/Qwen/Qwen3-8B/files", "Qwen/Qwen3-8B"),
            ("Qwen/Qwen2.5-VL-7B", "Qwen/Qwen2.5-VL-7B"),
            (" qwen 2.5", "qwen 2.5"),
            ("01.ai/Yi-6B", "01.ai/Yi-6B"),
            ("https://huggingface.co/Qwen", "https://huggingface.co/Qwen"),
        ] {
            assert_eq!(without_host(typed), name, "{typed}");
        }
    }

    #[test]
    fn other_scripts_are_no_obstacle() {
        assert_eq!(rank("消费", "NVIDIA 消费级 RTX 4090"), Some(0));
        assert_eq!(rank("é", "RTX"), None);
    }
}
