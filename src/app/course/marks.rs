use super::book::Book;

/// What a reader has ticked, read and solved, by name; as the browser keeps it and as it is exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Reads what was kept: names apart by line ends.
    pub fn read(text: &str) -> Self {
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    /// What is kept.
    pub fn write(&self) -> String {
        self.0.join("\n")
    }

    /// Whether something is ticked.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Ticks something, or takes the tick away.
    pub fn set(&mut self, name: &str, on: bool) {
        self.0.retain(|known| known != name);
        if on {
            self.0.push(name.to_owned());
        }
    }

    /// How many rows are done, of so many.
    pub fn done(&self, book: &Book) -> (usize, usize) {
        let done = book.rows().filter(|row| self.has(row.id)).count();
        (done, book.rows().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let mut marks = Marks::default();
        marks.set("9.attn", true);
        marks.set("9.lists/before/2", true);
        marks.set("9.attn", true);
        assert_eq!(Marks::read(&marks.write()), marks);
        marks.set("9.attn", false);
        assert_eq!(marks.write(), "9.lists/before/2");
    }
}
