//! Simple commands of a shell script, without comments, redirections and here-documents.

/// A logical line of a script: what one command or several, with `;` and so on between them, are written on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogicalLine {
    /// Number of its first line, from 1.
    pub line: usize,
    /// Its text, without the backslashes and line ends that continued it.
    pub text: String,
    /// What ended it before its author meant it to end.
    pub early_end: Option<EarlyEnd>,
}

/// What ends a command on several lines early, though it looks as if it went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyEnd {
    /// A comment among the lines.
    Comment,
    /// A blank behind the backslash.
    Blank,
}

/// Joins the lines of a script that belong together: those that end with a backslash, and those of a text in quotes.
/// Leaves out here-documents.
pub(crate) fn logical_lines(text: &str) -> Vec<LogicalLine> {
    let mut lines = text.lines().enumerate();
    let mut out = Vec::new();
    while let Some((number, first)) = lines.next() {
        let mut line = String::new();
        let mut state = State::default();
        let mut next = first;
        let mut is_continued = false;
        let early_end = loop {
            let end = state.pass(next);
            let early_end = match end {
                End::Comment if is_continued || next.trim_end().ends_with('\\') => Some(EarlyEnd::Comment),
                End::Plain if next.ends_with([' ', '\t']) && ends_in_backslash(next.trim_end()) => {
                    Some(EarlyEnd::Blank)
                }
                _ => None,
            };
            match end {
                End::Continued => line.push_str(&next[..next.len() - 1]),
                _ => line.push_str(next),
            }
            if end == End::Plain && state.quote.is_some() {
                line.push('\n');
            } else if end != End::Continued {
                break early_end;
            }
            is_continued |= end == End::Continued;
            match lines.next() {
                Some((_, following)) => next = following,
                None => break None,
            }
        };
        if let Some(end) = here_document(&line) {
            lines.by_ref().find(|(_, line)| line.trim() == end);
        }
        out.push(LogicalLine {
            line: number + 1,
            text: line,
            early_end,
        });
    }
    out
}

/// Returns true if the last character is a backslash that no other one escapes.
fn ends_in_backslash(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// What is open at the end of a line.
#[derive(Debug, Default)]
struct State {
    quote: Option<char>,
    depth: usize,
    /// True unless the next line goes on within a word.
    is_within_word: bool,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Plain,
    /// A backslash joins the next line to it.
    Continued,
    /// A comment runs to its end.
    Comment,
}

impl State {
    /// Passes a line.
    fn pass(&mut self, line: &str) -> End {
        let mut scan = Scan {
            quote: self.quote,
            depth: self.depth,
            starts: !self.is_within_word,
            ..Scan::new(line)
        };
        while scan.next().is_some() {}
        (self.quote, self.depth) = (scan.quote, scan.depth);
        self.is_within_word = scan.is_continued && !scan.starts_before_backslash;
        match (scan.is_comment, scan.is_continued) {
            (true, _) => End::Comment,
            (_, true) => End::Continued,
            _ => End::Plain,
        }
    }
}

/// Splits a line into its simple commands, which `;`, `&&`, `||`, `|` and `&` separate.
pub(crate) fn simple_commands(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut scan = Scan::new(line);
    while let Some(found) = scan.next() {
        let Some(own) = out.last_mut() else { break };
        match found {
            Found::Text(text) => own.push_str(text),
            Found::Redirection(digits) => own.truncate(own.len() - digits),
            Found::End => out.push(String::new()),
        }
    }
    out
}

/// The quote that is open behind a text, before which `quote` is open.
fn quote_after(text: &str, quote: Option<char>) -> Option<char> {
    let mut scan = Scan {
        quote,
        ..Scan::new(text)
    };
    while scan.next().is_some() {}
    scan.quote
}

/// The word that ends the here-document which a line begins.
fn here_document(line: &str) -> Option<String> {
    let (before, after) = line.split_once("<<")?;
    if after.starts_with('<') || quote_after(before, None).is_some() || before.trim_start().starts_with('#') {
        return None;
    }
    let word = after.trim_start_matches('-').trim_start();
    let word: String = word.chars().take_while(|c| !c.is_whitespace() && *c != ';').collect();
    let word = word.trim_matches(['\'', '"', '\\']).to_owned();
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        .then_some(word)
}

enum Found<'a> {
    Text(&'a str),
    /// A redirection, before which this many digits name a file descriptor.
    Redirection(usize),
    /// The end of a simple command.
    End,
}

/// A walk along a line.
struct Scan<'a> {
    rest: &'a str,
    quote: Option<char>,
    /// Number of `$(`, `${` and `((` that are open.
    depth: usize,
    /// True at the beginning of a word.
    starts: bool,
    /// Digits since the beginning of the word, if it has nothing else.
    digits: Option<usize>,
    /// True once a comment was met.
    is_comment: bool,
    /// True if the text ends with a backslash that nothing follows, and if that stands at the beginning of a word.
    is_continued: bool,
    starts_before_backslash: bool,
}

impl<'a> Scan<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            rest: line,
            quote: None,
            depth: 0,
            starts: true,
            digits: Some(0),
            is_comment: false,
            is_continued: false,
            starts_before_backslash: false,
        }
    }

    /// Takes `length` bytes as text.
    fn text(&mut self, length: usize) -> Found<'a> {
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.starts = text.ends_with(char::is_whitespace);
        let is_digit = text.len() == 1 && text.as_bytes()[0].is_ascii_digit();
        self.digits = match self.digits {
            _ if self.starts => Some(0),
            Some(before) if is_digit => Some(before + 1),
            _ => None,
        };
        Found::Text(text)
    }

    fn next(&mut self) -> Option<Found<'a>> {
        let first = self.rest.chars().next()?;
        let length = first.len_utf8();
        if first == '\\' && self.quote != Some('\'') {
            let second = self.rest[length..].chars().next().map_or(0, char::len_utf8);
            self.is_continued = second == 0;
            self.starts_before_backslash = self.starts;
            return Some(self.text(length + second));
        }
        match self.quote {
            Some(quote) => {
                if first == quote {
                    self.quote = None;
                }
                return Some(self.text(length));
            }
            None if matches!(first, '"' | '\'') => self.quote = Some(first),
            None if first == '$' && self.rest[length..].starts_with(['(', '{']) => {
                self.depth += 1;
                return Some(self.text(2));
            }
            None if self.depth > 0 && matches!(first, '(' | '{') => self.depth += 1,
            None if self.depth > 0 && matches!(first, ')' | '}') => self.depth -= 1,
            None if self.depth > 0 => {}
            None if first == '#' && self.starts => {
                self.rest = "";
                self.is_comment = true;
                return None;
            }
            None if matches!(first, ';' | '\n') => return Some(self.end(1)),
            None if first == '|' => return Some(self.end(1 + usize::from(self.rest[1..].starts_with(['|', '&'])))),
            None if self.rest.starts_with("&>") => return Some(self.redirection()),
            None if first == '&' => return Some(self.end(1 + usize::from(self.rest[1..].starts_with('&')))),
            None if matches!(first, '<' | '>') => return Some(self.redirection()),
            None => {}
        }
        Some(self.text(length))
    }

    fn end(&mut self, length: usize) -> Found<'a> {
        self.rest = &self.rest[length..];
        (self.starts, self.digits) = (true, Some(0));
        Found::End
    }

    /// Passes a redirection and its target.
    fn redirection(&mut self) -> Found<'a> {
        let digits = self.digits.unwrap_or(0);
        self.rest = self
            .rest
            .trim_start_matches(['<', '>', '&', '|', '-'])
            .trim_start_matches([' ', '\t']);
        let mut target = Scan::new(self.rest);
        while target
            .rest
            .chars()
            .next()
            .is_some_and(|c| !(target.is_plain() && (c.is_whitespace() || ";&|<>".contains(c))))
        {
            target.next();
        }
        self.rest = target.rest;
        (self.starts, self.digits) = (true, Some(0));
        Found::Redirection(digits)
    }

    fn is_plain(&self) -> bool {
        self.quote.is_none() && self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(line: &str) -> Vec<String> {
        let commands = simple_commands(line)
            .into_iter()
            .map(|command| command.trim().to_owned());
        commands.filter(|command| !command.is_empty()).collect()
    }

    #[test]
    fn commands_of_a_line_are_told_apart() {
        assert_eq!(
            commands("cd a && python b.py; echo \"c; d\" | tee e &"),
            ["cd a", "python b.py", "echo \"c; d\"", "tee e"]
        );
        assert_eq!(
            commands("A=${B:-$(shuf -n 1 | head)} python a.py"),
            ["A=${B:-$(shuf -n 1 | head)} python a.py"]
        );
        assert_eq!(commands("python a.py # not; this"), ["python a.py"]);
        assert_eq!(commands("echo $((1 | 2)) a#b"), ["echo $((1 | 2)) a#b"]);
    }

    #[test]
    fn redirections_are_left_out() {
        for line in [
            "python a.py --bf16 True > log 2>&1 &",
            "python a.py --bf16 True 2>&1 | tee -a \"${DIR}/a b.log\"",
            "python a.py 2>/dev/null --bf16 True &> x",
            "python a.py --bf16 True >> \"a b\" 2> c",
        ] {
            let words = shlex::split(&simple_commands(line)[0]).unwrap();
            assert_eq!(words, ["python", "a.py", "--bf16", "True"], "{line}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_divided(text in "([ \\n'\"#$(){}|&;<>2\\\\a-]|é){0,40}") {
            for line in logical_lines(&text) {
                simple_commands(&line.text);
            }
        }
    }

    #[test]
    fn a_quote_that_never_ends_takes_no_time() {
        let text = "\"\n".to_owned() + &"a b c\n".repeat(100_000);
        assert_eq!(logical_lines(&text).len(), 1);
        let text = "a \\\n".repeat(100_000);
        assert_eq!(logical_lines(&text).len(), 1);
    }

    fn texts(text: &str) -> Vec<String> {
        logical_lines(text).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_comment_or_a_blank_behind_the_backslash_ends_a_command_as_in_bash() {
        let of = |text: &str| -> Vec<_> {
            logical_lines(text)
                .into_iter()
                .map(|line| (line.line, line.text, line.early_end))
                .collect()
        };
        assert_eq!(
            of("a \\\n  --b 1 \\\n  # --c 2 \\\n  --d 3\n"),
            [
                (1, "a   --b 1   # --c 2 \\".to_owned(), Some(EarlyEnd::Comment)),
                (4, "  --d 3".to_owned(), None)
            ]
        );
        assert_eq!(
            of("a \\\n --b 1 \\ \n --d 3\n"),
            [
                (1, "a  --b 1 \\ ".to_owned(), Some(EarlyEnd::Blank)),
                (3, " --d 3".to_owned(), None)
            ]
        );
        // A comment of its own ends nothing, though it ends with a backslash.
        assert_eq!(texts("# a \\\nb\n"), ["# a \\", "b"]);
        // Within a word `#` is none, also where a backslash joins the word.
        assert_eq!(texts("a b\\\n#c \\\nd"), ["a b#c d"]);
        assert_eq!(texts("a 'x \\\ny' \\\\\nb"), ["a 'x \\\ny' \\\\", "b"]);
        assert_eq!(texts("a \\\r\nb\r\nc"), ["a b", "c"]);
    }

    #[test]
    fn lines_of_one_text_belong_together() {
        let text = "args=\"\n  --a \"b\" \\\n  --c\"\n# don't\ncat > x <<'EOF'\nit's\nEOF\npython $args\n";
        assert_eq!(
            texts(text),
            [
                "args=\"\n  --a \"b\"   --c\"",
                "# don't",
                "cat > x <<'EOF'",
                "python $args"
            ]
        );
    }
}
