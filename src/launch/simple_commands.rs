//! Simple commands of a shell script, without comments, redirections and here-documents.

/// Joins the lines of a script that belong together: those that end with a backslash, and those of a text in quotes.
/// Leaves out here-documents.
pub(crate) fn logical_lines(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut lines = joined.lines();
    let mut out = Vec::new();
    while let Some(first) = lines.next() {
        let mut line = first.to_owned();
        let mut quote = quote_after(first, None);
        while quote.is_some() {
            let Some(next) = lines.next() else { break };
            line.push('\n');
            line.push_str(next);
            quote = quote_after(next, quote);
        }
        if let Some(end) = here_document(&line) {
            lines.by_ref().find(|line| line.trim() == end);
        }
        out.push(line);
    }
    out
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
}

impl<'a> Scan<'a> {
    fn new(line: &'a str) -> Self {
        Self {
            rest: line,
            quote: None,
            depth: 0,
            starts: true,
            digits: Some(0),
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
                simple_commands(&line);
            }
        }
    }

    #[test]
    fn a_quote_that_never_ends_takes_no_time() {
        let text = "\"\n".to_owned() + &"a b c\n".repeat(100_000);
        assert_eq!(logical_lines(&text).len(), 1);
    }

    #[test]
    fn lines_of_one_text_belong_together() {
        let text = "args=\"\n  --a \"b\" \\\n  --c\"\n# don't\ncat > x <<'EOF'\nit's\nEOF\npython $args\n";
        assert_eq!(
            logical_lines(text),
            [
                "args=\"\n  --a \"b\"   --c\"",
                "# don't",
                "cat > x <<'EOF'",
                "python $args"
            ]
        );
    }
}
