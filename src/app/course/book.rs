//! The course's data and texts in one language.

use serde_json::Value;

use super::html::{self, escape};

/// The course in one language, as built by `cargo xtask build`.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    parts: Vec<Value>,
    texts: Value,
}

/// A row of the course: one page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Id, such as `9.attn`.
    pub id: &'a str,
    /// Blocks of the page.
    pub blocks: &'a [Value],
    /// Texts of the page.
    texts: &'a Value,
}

/// Returns a string of an object; empty if it has none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a list; empty if it is not a list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Book {
    /// Parses the file of a language.
    pub fn read(json: &str) -> Option<Self> {
        let mut whole: Value = serde_json::from_str(json).ok()?;
        let parts = whole.get_mut("parts")?.as_array_mut().map(std::mem::take)?;
        let texts = whole.get_mut("texts").map(Value::take)?;
        Some(Self { parts, texts })
    }

    /// Iterates over the parts with their rows, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = Row<'_>>)> {
        self.parts.iter().map(|part| {
            let rows = items(part.get("rows")).iter().map(|row| self.row_of(row));
            (text(part, "part"), rows)
        })
    }

    /// Iterates over all rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.parts().flat_map(|(_, rows)| rows)
    }

    /// Finds a row by its id.
    pub fn row(&self, id: &str) -> Option<Row<'_>> {
        self.rows().find(|row| row.id == id)
    }

    fn row_of<'a>(&'a self, row: &'a Value) -> Row<'a> {
        let id = text(row, "id");
        Row {
            id,
            blocks: items(row.get("blocks")),
            texts: self.texts.get(id).unwrap_or(&Value::Null),
        }
    }

    /// Returns a text shared by all pages, as HTML.
    pub fn word(&self, key: &str) -> String {
        escape(self.plain_word(key))
    }

    /// Returns a text shared by all pages, unescaped.
    pub fn plain_word(&self, key: &str) -> &str {
        self.texts.get("words").map_or("", |words| text(words, key))
    }

    /// Returns a text shared by all pages as HTML, with `{}` replaced.
    pub fn word_with(&self, key: &str, inside: &str) -> String {
        self.word(key).replace("{}", &escape(inside))
    }

    /// Title of a part, as HTML.
    pub fn part_title(&self, part: &str) -> String {
        self.word(&format!("part_{part}"))
    }

    /// Label of a name in a formula: the row's own, or else the shared one.
    pub fn label<'a>(&'a self, row: Row<'a>, name: &str) -> &'a str {
        let own = text(row.texts, &format!("n.{name}"));
        let shared = self.texts.get("labels").map_or("", |labels| text(labels, name));
        if own.is_empty() { shared } else { own }
    }
}

impl<'a> Row<'a> {
    /// Title, as HTML.
    pub fn title(self) -> String {
        escape(text(self.texts, "title"))
    }

    /// Returns one of the row's texts as HTML; empty if it has none.
    pub fn line(self, key: &str) -> String {
        html::inline(text(self.texts, key))
    }

    /// Returns one of the row's texts unescaped.
    pub fn plain(self, key: &str) -> &'a str {
        text(self.texts, key)
    }

    /// Returns one of the row's lists.
    pub fn list(self, key: &str) -> &'a [Value] {
        items(self.texts.get(key))
    }

    /// Renders a text, or a list of texts, as paragraphs.
    pub fn paragraphs(self, key: &str) -> String {
        let one = text(self.texts, key);
        let all = self.list(key).iter().filter_map(Value::as_str);
        let all = all.chain((!one.is_empty()).then_some(one));
        all.map(|text| format!("<p>{}</p>", html::inline(text))).collect()
    }

    /// Names of the row's checklists, in order.
    pub fn checklists(self) -> impl Iterator<Item = &'a str> {
        self.blocks
            .iter()
            .map(name_of)
            .filter_map(|(kind, name)| (kind == "checklist").then_some(name))
    }

    /// Items of a checklist: the id of each tick, and its text as HTML.
    pub fn checklist(self, name: &str) -> impl Iterator<Item = (String, String)> {
        let tick = format!("{}/{name}", self.id);
        let all = self.list(&format!("{name}.items")).iter().enumerate();
        all.map(move |(place, item)| {
            (
                format!("{tick}/{place}"),
                html::inline(item.as_str().unwrap_or_default()),
            )
        })
    }

    /// Index of the block with this name.
    pub fn place(self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| name_of(block).1 == name)
    }
}

/// Returns the kind of a block and its name within the row, which are the first entry of its object.
pub fn name_of(block: &Value) -> (&str, &str) {
    let first = block.as_object().and_then(|entries| entries.iter().next());
    first.map_or(("", ""), |(kind, name)| {
        (kind.as_str(), name.as_str().unwrap_or_default())
    })
}
