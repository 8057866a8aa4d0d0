//! The reader's progress in the course.

use super::book::Book;

/// Names of everything the reader has ticked, read and solved; stored by the browser and exported as is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Parses the stored text: one name per line.
    pub fn read(text: &str) -> Self {
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    /// Formats the text to store.
    pub fn write(&self) -> String {
        self.0.join("\n")
    }

    /// Returns true if the name is ticked.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Sets or removes a tick.
    pub fn set(&mut self, name: &str, on: bool) {
        self.0.retain(|known| known != name);
        if on {
            self.0.push(name.to_owned());
        }
    }

    /// Number of rows done, and of all rows.
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
