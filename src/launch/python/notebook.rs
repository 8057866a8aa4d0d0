//! Cells of a notebook: code, commands of the shell, and files that cells write.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A notebook, taken apart.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    /// Code of each cell, by its number from 1; without what IPython reads itself.
    pub cells: Vec<(usize, String)>,
    /// Commands of the shell, in order.
    pub commands: String,
    /// Files that cells write, with their text.
    pub files: Vec<(String, String)>,
    /// The card that the notebook asks for.
    pub card: Option<String>,
}

#[derive(Deserialize)]
struct Json {
    #[serde(default)]
    cells: Vec<Cell>,
    /// Format 3 has sheets around cells.
    #[serde(default)]
    worksheets: Vec<Sheet>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Sheet {
    #[serde(default)]
    cells: Vec<Cell>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    colab: Colab,
}

#[derive(Deserialize, Default)]
struct Colab {
    #[serde(rename = "gpuType")]
    card: Option<String>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(default)]
    cell_type: String,
    #[serde(default)]
    source: Text,
    #[serde(default)]
    input: Text,
    #[serde(default, rename = "outputs")]
    _outputs: Option<IgnoredAny>,
}

/// A text, or its lines.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
    #[default]
    Nothing,
}

impl Text {
    fn whole(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Lines(lines) => lines.concat(),
            Self::Nothing => String::new(),
        }
    }
}

/// Magics whose cell is Python all the same.
const PYTHON_MAGICS: [&str; 6] = ["capture", "time", "timeit", "prun", "python", "memit"];

impl Notebook {
    /// Takes a notebook apart.
    ///
    /// # Errors
    /// Says what is wrong with its JSON.
    pub fn read(text: &str) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|error| format!("it is no notebook: {error}"))?;
        let mut out = Self {
            card: json.metadata.colab.card,
            ..Self::default()
        };
        let cells = json
            .cells
            .into_iter()
            .chain(json.worksheets.into_iter().flat_map(|sheet| sheet.cells));
        for (at, cell) in cells.enumerate().filter(|(_, cell)| cell.cell_type == "code") {
            let source = match cell.source.whole() {
                empty if empty.is_empty() => cell.input.whole(),
                source => source,
            };
            out.cell(at + 1, &source);
        }
        Ok(out)
    }

    #[expect(clippy::too_many_lines, reason = "one pass over the lines of a cell")]
    fn cell(&mut self, number: usize, source: &str) {
        let source = source.replace("\r\n", "\n");
        let mut lines = source.lines().peekable();
        let mut skipped = 0;
        while let Some(line) = lines.peek().copied() {
            let Some(magic) = line.trim_start().strip_prefix("%%") else {
                if !line.trim().is_empty() {
                    break;
                }
                lines.next();
                skipped += 1;
                continue;
            };
            let (name, rest) = magic.split_once(char::is_whitespace).unwrap_or((magic, ""));
            lines.next();
            skipped += 1;
            let body: Vec<&str> = lines.clone().collect();
            let body = body.join("\n");
            match name {
                name if PYTHON_MAGICS.contains(&name) => {}
                "writefile" | "file" => {
                    let path = rest.split_ascii_whitespace().find(|word| !word.starts_with('-'));
                    let path = path.unwrap_or_default().trim_matches(['"', '\'']);
                    match self.files.iter_mut().find(|(own, _)| own == path) {
                        Some((_, text)) if rest.starts_with("-a") => *text += &body,
                        Some((_, text)) => *text = body,
                        None => self.files.push((path.to_owned(), body)),
                    }
                    return;
                }
                "bash" | "sh" | "script" | "system" | "sx" => {
                    self.commands += &body;
                    self.commands.push('\n');
                    return;
                }
                _ => return,
            }
        }
        let mut code = "\n".repeat(skipped);
        while let Some(line) = lines.next() {
            let trimmed = line.trim_start();
            let indent = &line[..line.len() - trimmed.len()];
            let command = trimmed.strip_prefix('!').map(|rest| rest.trim_start_matches('!'));
            if let Some(command) = command {
                self.commands += command;
                self.commands.push('\n');
                let mut is_command = command.trim_end().ends_with('\\');
                // A block must not be empty.
                code += indent;
                code += "pass\n";
                while is_command && let Some(line) = lines.next() {
                    self.commands += line;
                    self.commands.push('\n');
                    is_command = line.trim_end().ends_with('\\');
                    code.push('\n');
                }
            } else if let Some(magic) = trimmed
                .strip_prefix('%')
                .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
            {
                if let Some(setting) = magic.strip_prefix("env ").filter(|setting| setting.contains('=')) {
                    self.commands += &format!("export {setting}\n");
                }
                code += indent;
                code += "pass\n";
            } else {
                code += &as_python(line);
                code.push('\n');
            }
        }
        self.cells.push((number, code));
    }
}

/// A line of IPython as Python: what a command gives (`files = !ls`) is not known, and help (`name?`, `?name`) is nothing.
/// The parser knows such lines too, but fails where it takes up a line in the middle of an expression that was never closed
/// (`ruff_python_parser`, `parse_ipython_escape_command_expression`).
fn as_python(line: &str) -> Cow<'_, str> {
    let trimmed = line.trim();
    let indent = &line[..line.len() - line.trim_start().len()];
    if trimmed.starts_with('?') || trimmed.ends_with('?') && !trimmed.contains(['#', '"', '\'']) {
        return format!("{indent}pass").into();
    }
    if let Some((name, given)) = line.split_once('=')
        && given.trim_start().starts_with(['!', '%'])
        && name.chars().all(|c| c.is_alphanumeric() || " _,.".contains(c))
    {
        return format!("{name}= None").into();
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ipython_are_python() {
        for (line, python) in [
            ("files = !ls *.json", "files = None"),
            ("    a, b = %timeit -o f()", "    a, b = None"),
            ("trainer.train?", "pass"),
            ("  ??Trainer", "  pass"),
            ("x != y", "x != y"),
            ("print('fits?')", "print('fits?')"),
            ("rest = a % b  # why?", "rest = a % b  # why?"),
        ] {
            assert_eq!(as_python(line), python);
        }
    }

    #[test]
    fn a_notebook_is_code_commands_and_files() {
        let json = serde_json::json!({"cells": [
            {"cell_type": "markdown", "source": "# import this"},
            {"cell_type": "code", "source": ["%%capture\n", "!pip install \\\n", "  x\n", "import a\n"], "outputs": [{"data": {"image/png": "AAAA"}}]},
            {"cell_type": "code", "source": "%%writefile conf/a.yaml\nstage: sft\n"},
            {"cell_type": "code", "source": "if a:\n    %env B=1\n    !swift sft --model {a}\n"},
        ], "metadata": {"colab": {"gpuType": "T4"}}});
        let read = Notebook::read(&json.to_string()).unwrap();
        assert_eq!(
            read.cells,
            [
                (2, "\npass\n\nimport a\n".to_owned()),
                (4, "if a:\n    pass\n    pass\n".to_owned())
            ]
        );
        assert_eq!(read.files, [("conf/a.yaml".to_owned(), "stage: sft".to_owned())]);
        assert_eq!(
            read.commands,
            "pip install \\\n  x\nexport B=1\nswift sft --model {a}\n"
        );
        assert_eq!(read.card.as_deref(), Some("T4"));
        assert!(Notebook::read("{").is_err());
    }
}
