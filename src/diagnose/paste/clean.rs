//! Takes from a line what terminals, boxes and launchers add to it.

/// Appends a line without escapes, box borders and prefixes of ranks.
pub fn push(raw: &str, out: &mut String) {
    if !raw.contains('\u{1b}') {
        out.push_str(without_prefix(without_box(raw)));
        return;
    }
    let plain = without_escapes(raw);
    out.push_str(without_prefix(without_box(&plain)));
}

/// Removes terminal escapes: colours, cursor moves, titles and links.
pub fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            if !c.is_control() || c == '\t' {
                out.push(c);
            }
            continue;
        }
        match chars.peek() {
            Some('[') => {
                chars.next();
                // Parameters, then one final letter.
                while let Some(&c) = chars.peek() {
                    if !c.is_ascii() {
                        break;
                    }
                    chars.next();
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
            }
            Some(']') => {
                while let Some(&c) = chars.peek() {
                    if c == '\u{1b}' {
                        break;
                    }
                    chars.next();
                    if c == '\u{7}' {
                        break;
                    }
                }
            }
            Some('\\' | '(' | ')') => {
                chars.next();
            }
            _ => {}
        }
    }
    out
}

/// Removes the border of a box that rich or a table draws around a line.
fn without_box(line: &str) -> &str {
    const BORDERS: [char; 4] = ['│', '┃', '║', '▌'];
    let Some(inner) = line.trim_start().strip_prefix(BORDERS) else {
        return line;
    };
    inner.trim_end().trim_end_matches(BORDERS).trim_end()
}

/// Removes what says which process wrote a line: `[rank0]:`, `[1,0]<stderr>:`, `(Worker pid=12, ip=…)`, `[default3]:`.
fn without_prefix(line: &str) -> &str {
    let mut rest = line;
    for _ in 0..3 {
        let Some(after) = one_prefix(rest.trim_start()) else {
            break;
        };
        // The message follows one blank; more of them are its own indentation.
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    rest
}

fn one_prefix(line: &str) -> Option<&str> {
    if let Some(inner) = line.strip_prefix('[') {
        let (name, after) = inner.split_once(']')?;
        let digits = ["rank", "RANK", "Rank ", "rank ", "default", "local_rank"]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if digits.is_some_and(is_number) {
            return after.strip_prefix(':').or(Some(after));
        }
        // MPI's `[1,0]<stderr>:`.
        let (job, rank) = name.split_once(',')?;
        if is_number(job) && is_number(rank) {
            return after
                .strip_prefix("<stderr>:")
                .or_else(|| after.strip_prefix("<stdout>:"));
        }
        return None;
    }
    let inner = line.strip_prefix('(')?;
    let (name, after) = inner.split_once(')')?;
    (name.contains("pid=") && name.len() < 120).then_some(after)
}
