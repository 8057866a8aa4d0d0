//! Patterns of file names, as `case`, `[[ = ]]` and `${x%…}` have them.

/// Returns true if a pattern fits a whole text. `*`, `?`, `[…]` and escaped characters are known.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = (at < pattern.len() && pattern[at] != '*').then(|| one(&pattern[at..], text.get(seen).copied()));
        match step {
            Some(Some(length)) => {
                at += length;
                seen += 1;
            }
            None if at < pattern.len() => {
                star = Some((at, seen));
                at += 1;
            }
            None if seen == text.len() => return true,
            _ => match star {
                Some((place, taken)) if taken < text.len() => {
                    star = Some((place, taken + 1));
                    (at, seen) = (place + 1, taken + 1);
                }
                _ => return false,
            },
        }
    }
}

/// Length of the pattern's first element, if it fits a character.
fn one(pattern: &[char], found: Option<char>) -> Option<usize> {
    let found = found?;
    match pattern[0] {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern[1] == found).then_some(2),
        '[' => {
            let close = pattern.iter().skip(2).position(|c| *c == ']').map(|at| at + 2);
            let Some(close) = close else {
                return (found == '[').then_some(1);
            };
            let is_negated = matches!(pattern[1], '!' | '^');
            let set = &pattern[1 + usize::from(is_negated)..close];
            (is_in(set, found) != is_negated).then_some(close + 1)
        }
        plain => (plain == found).then_some(1),
    }
}

fn is_in(set: &[char], found: char) -> bool {
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            if (set[at]..=set[at + 2]).contains(&found) {
                return true;
            }
            at += 3;
        } else {
            if set[at] == found {
                return true;
            }
            at += 1;
        }
    }
    false
}

/// Most characters of a text of which a part is taken away by a pattern: each place is tried.
const MOST_TRIED: usize = 2000;

/// Takes the shortest or longest beginning away that a pattern fits.
pub(super) fn without_beginning<'a>(text: &'a str, pattern: &str, is_longest: bool) -> &'a str {
    let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    ends.truncate(MOST_TRIED);
    if is_longest {
        ends.reverse();
    }
    let end = ends.into_iter().find(|end| fits(pattern, &text[..*end]));
    end.map_or(text, |end| &text[end..])
}

/// Takes the shortest or longest end away that a pattern fits.
pub(super) fn without_end<'a>(text: &'a str, pattern: &str, is_longest: bool) -> &'a str {
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    starts.reverse();
    starts.truncate(MOST_TRIED);
    if is_longest {
        starts.reverse();
    }
    let start = starts.into_iter().find(|start| fits(pattern, &text[*start..]));
    start.map_or(text, |start| &text[..start])
}

/// Puts a text where a pattern fits: everywhere, or at the first place.
pub(super) fn replaced(text: &str, pattern: &str, with: &str, everywhere: bool) -> String {
    // Characters without a meaning of their own are by far the most frequent pattern.
    if !pattern.contains(['*', '?', '[']) {
        let plain = pattern.replace('\\', "");
        return match (plain.is_empty(), everywhere) {
            (true, _) => text.to_owned(),
            (_, true) => text.replace(&plain, with),
            (_, false) => text.replacen(&plain, with, 1),
        };
    }
    let mut out = String::new();
    let mut rest = text;
    let mut tried = 0;
    while let Some(first) = rest.chars().next() {
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.take(200).collect();
        tried += 1;
        match ends.into_iter().rev().find(|end| fits(pattern, &rest[..*end])) {
            Some(end) if tried < MOST_TRIED => {
                out.push_str(with);
                rest = &rest[end..];
                if !everywhere {
                    break;
                }
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        if tried >= MOST_TRIED {
            break;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_bash() {
        for (pattern, text, is_fitting) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("-m", "-m", true),
            ("[0-9]*", "7b", true),
            ("[!0-9]", "7", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("*.*", "x", false),
            ("[", "[", true),
        ] {
            assert_eq!(fits(pattern, text), is_fitting, "{pattern} {text}");
        }
        assert_eq!(without_end("a/b.tar.gz", ".*", false), "a/b.tar");
        assert_eq!(without_end("a/b.tar.gz", ".*", true), "a/b");
        assert_eq!(without_beginning("a/b/c", "*/", true), "c");
        assert_eq!(without_beginning("a/b/c", "*/", false), "b/c");
        assert_eq!(replaced("a/b/c", "/", "_", true), "a_b_c");
        assert_eq!(replaced("abcabc", "b*", "x", true), "ax");
        assert_eq!(replaced("abcabc", "[bc]", "", false), "acabc");
    }
}
