use serde_json::Value;

use super::html::{self, escape};

/// The course in one language, as `cargo xtask build` leaves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    parts: Vec<Value>,
    texts: Value,
}

/// A row of the course: one page.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Its id, such as `9.attn`.
    pub id: &'a str,
    /// What the page is made of.
    pub blocks: &'a [Value],
    /// Its texts.
    texts: &'a Value,
}

/// A text of an object; empty where there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list; none where there is no list.
pub fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Book {
    /// Reads the file of a language.
    pub fn read(json: &str) -> Option<Self> {
        let mut whole: Value = serde_json::from_str(json).ok()?;
        let parts = whole.get_mut("parts")?.as_array_mut().map(std::mem::take)?;
        let texts = whole.get_mut("texts").map(Value::take)?;
        Some(Self { parts, texts })
    }

    /// Parts with their rows, in order.
    pub fn parts(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = Row<'_>>)> {
        self.parts.iter().map(|part| {
            let rows = items(part.get("rows")).iter().map(|row| self.row_of(row));
            (text(part, "part"), rows)
        })
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.parts().flat_map(|(_, rows)| rows)
    }

    /// The row of this id.
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

    /// What all pages say, as HTML.
    pub fn word(&self, key: &str) -> String {
        escape(self.plain_word(key))
    }

    /// What all pages say, as it stands.
    pub fn plain_word(&self, key: &str) -> &str {
        self.texts.get("words").map_or("", |words| text(words, key))
    }

    /// What all pages say, with a number or a name in the place of `{}`.
    pub fn word_with(&self, key: &str, inside: &str) -> String {
        self.word(key).replace("{}", &escape(inside))
    }

    /// The name of a part.
    pub fn part_title(&self, part: &str) -> String {
        self.word(&format!("part_{part}"))
    }

    /// What a name of a formula is called: by its row, or by all rows.
    pub fn label<'a>(&'a self, row: Row<'a>, name: &str) -> &'a str {
        let own = text(row.texts, &format!("n.{name}"));
        let shared = self.texts.get("labels").map_or("", |labels| text(labels, name));
        if own.is_empty() { shared } else { own }
    }
}

impl<'a> Row<'a> {
    /// Its title.
    pub fn title(self) -> String {
        escape(text(self.texts, "title"))
    }

    /// One of its texts as HTML; empty where there is none.
    pub fn line(self, key: &str) -> String {
        html::inline(text(self.texts, key))
    }

    /// One of its texts as it stands.
    pub fn plain(self, key: &str) -> &'a str {
        text(self.texts, key)
    }

    /// A list among its texts.
    pub fn list(self, key: &str) -> &'a [Value] {
        items(self.texts.get(key))
    }

    /// Paragraphs: a text, or a list of them.
    pub fn paragraphs(self, key: &str) -> String {
        let one = text(self.texts, key);
        let all = self.list(key).iter().filter_map(Value::as_str);
        let all = all.chain((!one.is_empty()).then_some(one));
        all.map(|text| format!("<p>{}</p>", html::inline(text))).collect()
    }

    /// Names of its lists to tick, in order.
    pub fn checklists(self) -> impl Iterator<Item = &'a str> {
        self.blocks
            .iter()
            .map(name_of)
            .filter_map(|(kind, name)| (kind == "checklist").then_some(name))
    }

    /// The items of a list to tick: the name of each tick, and its text as HTML.
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

    /// The place of the block that has this name.
    pub fn place(self, name: &str) -> Option<usize> {
        self.blocks.iter().position(|block| name_of(block).1 == name)
    }
}

/// The kind of a block and its name within its row: the first entry of its object.
pub fn name_of(block: &Value) -> (&str, &str) {
    let first = block.as_object().and_then(|entries| entries.iter().next());
    first.map_or(("", ""), |(kind, name)| {
        (kind.as_str(), name.as_str().unwrap_or_default())
    })
}
