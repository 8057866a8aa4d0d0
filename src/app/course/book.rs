//! The course's data and texts in one language.

use serde_json::Value;
use vramscope_phrases::fill;

/// The course in one language, as built by `cargo xtask build`.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    parts: Vec<Value>,
    texts: Value,
}

/// A row of the course's contents: one page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The course of the row.
    pub book: &'a Book,
    /// Id, such as `9.attn`.
    pub id: &'a str,
    blocks: &'a [Value],
    texts: &'a Value,
}

/// A block of a row, such as a figure or a checklist.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Row of the block.
    pub row: Row<'a>,
    /// Index within the row.
    pub index: usize,
    /// Kind, such as `figure`.
    pub kind: &'a str,
    /// Name within the row.
    pub name: &'a str,
    /// Everything about the block that does not depend on the language.
    pub data: &'a Value,
}

/// Returns a string of an object; empty if it has none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a list; empty if it is not a list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the strings of a list.
fn strings(values: &[Value]) -> impl ExactSizeIterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
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

    /// Returns the previous and the next row.
    pub fn neighbours(&self, id: &str) -> [Option<Row<'_>>; 2] {
        let index = self.rows().position(|row| row.id == id);
        let before = index.and_then(|index| self.rows().take(index).last());
        let after = index.and_then(|index| self.rows().nth(index + 1));
        [before, after]
    }

    fn row_of<'a>(&'a self, row: &'a Value) -> Row<'a> {
        let id = text(row, "id");
        Row {
            book: self,
            id,
            blocks: items(row.get("blocks")),
            texts: self.texts.get(id).unwrap_or(&Value::Null),
        }
    }

    /// Returns a text shared by all pages.
    pub fn word(&self, key: &str) -> &str {
        self.texts.get("words").map_or("", |words| text(words, key))
    }

    /// Returns a text shared by all pages with its gap filled.
    pub fn word_with(&self, key: &str, value: &str) -> String {
        fill(self.word(key), &[value])
    }

    /// Title of a part.
    pub fn part_title(&self, part: &str) -> &str {
        self.word(&format!("part_{part}"))
    }
}

impl<'a> Row<'a> {
    /// Title.
    pub fn title(self) -> &'a str {
        self.text("title")
    }

    /// Returns one of the row's texts; empty if it has none.
    pub fn text(self, key: &str) -> &'a str {
        text(self.texts, key)
    }

    /// Returns one of the row's lists of texts.
    pub fn texts(self, key: &str) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        strings(self.list(key))
    }

    /// Returns the paragraphs of a text, which is a text or a list of texts.
    pub fn paragraphs(self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let one = self.text(key);
        self.texts(key).chain((!one.is_empty()).then_some(one))
    }

    /// Returns one of the row's lists.
    fn list(self, key: &str) -> &'a [Value] {
        items(self.texts.get(key))
    }

    /// Iterates over the blocks, in order.
    pub fn blocks(self) -> impl Iterator<Item = Block<'a>> {
        self.blocks.iter().enumerate().map(move |(index, data)| {
            let (kind, name) = kind_and_name(data);
            Block {
                row: self,
                index,
                kind,
                name,
                data,
            }
        })
    }

    /// Finds a block by its name.
    pub fn block(self, name: &str) -> Option<Block<'a>> {
        self.blocks().find(|block| block.name == name)
    }

    /// Iterates over the checklists, in order.
    pub fn checklists(self) -> impl Iterator<Item = Block<'a>> {
        self.blocks().filter(|block| block.kind == "checklist")
    }
}

impl<'a> Block<'a> {
    /// Title.
    pub fn title(self) -> &'a str {
        self.row.text(self.name)
    }

    /// Returns one of the block's texts; empty if it has none.
    pub fn text(self, key: &str) -> &'a str {
        self.row.text(&self.key(key))
    }

    /// Returns one of the block's lists of texts.
    pub fn texts(self, key: &str) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        self.row.texts(&self.key(key))
    }

    /// Returns the paragraphs of one of the block's texts.
    pub fn paragraphs(self, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.row.paragraphs(&self.key(key))
    }

    /// Returns the texts of each item of one of the block's lists of lists.
    pub fn tuples(self, key: &str) -> impl Iterator<Item = impl ExactSizeIterator<Item = &'a str> + use<'a>> + use<'a> {
        let all = self.row.list(&self.key(key)).iter();
        all.map(|item| strings(items(Some(item))))
    }

    /// Items of a checklist: the id under which a tick is stored, and the text.
    pub fn checks(self) -> impl Iterator<Item = (String, &'a str)> {
        let (id, name) = (self.row.id, self.name);
        let items = self.texts("items").enumerate();
        items.map(move |(index, item)| (format!("{id}/{name}/{index}"), item))
    }

    /// Label of a name in a formula: the row's own (its text `n.NAME`), or else the one that all rows share.
    pub fn label(self, name: &str) -> &'a str {
        let own = self.row.text(&format!("n.{name}"));
        let shared = self
            .row
            .book
            .texts
            .get("labels")
            .map_or("", |labels| text(labels, name));
        if own.is_empty() { shared } else { own }
    }

    /// Lines of the block's sheet (its formulas and inputs), as data.
    pub fn line_data(self) -> &'a [Value] {
        items(self.data.get("lines"))
    }

    /// Returns the line of the block's sheet with this name, as data.
    pub fn line_named(self, name: &str) -> Option<&'a Value> {
        self.line_data().iter().find(|line| text(line, "name") == name)
    }

    fn key(self, key: &str) -> String {
        format!("{}.{key}", self.name)
    }
}

/// Returns the kind of a block and its name within the row, which are the first entry of its object.
fn kind_and_name(block: &Value) -> (&str, &str) {
    let first = block.as_object().and_then(|entries| entries.iter().next());
    first.map_or(("", ""), |(kind, name)| {
        (kind.as_str(), name.as_str().unwrap_or_default())
    })
}
