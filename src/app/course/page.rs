//! Renders a page of the course.

use serde_json::Value;

use super::book::{Book, Row, name_of};
use super::cases::{self, Names, Outcome};
use super::exercise::{self, Verdict};
use super::figure;
use super::given::{Given, Input, inputs};
use super::html::{element, escape};
use super::marks::Marks;
use super::{blocks, tree};
use crate::worker::view::Summary;

/// Results of setups, by query.
#[derive(Debug, Default)]
pub struct Known(Vec<(String, Result<Summary, String>)>);

impl Known {
    /// Returns the result of a setup, if known.
    pub fn get(&self, query: &str) -> Outcome<'_> {
        self.0
            .iter()
            .find(|(known, _)| known == query)
            .map(|(_, outcome)| outcome)
    }

    /// Stores the result of a setup.
    pub fn insert(&mut self, query: String, outcome: Result<Summary, String>) {
        self.0.push((query, outcome));
    }
}

/// A row of the course as shown, with the reader's entries, ticks and seed.
pub struct Page<'a> {
    /// The course.
    pub book: &'a Book,
    /// Row that is shown.
    pub row: Row<'a>,
    /// Values entered by the reader.
    pub given: &'a Given,
    /// Seed of the exercises; without one they use the course's numbers.
    pub seed: Option<u64>,
    /// Ticks of the reader.
    pub marks: &'a Marks,
    /// Results of simulated setups.
    pub known: &'a Known,
    /// Names used for the parts of a report.
    pub names: Names<'a>,
}

impl<'a> Page<'a> {
    /// Renders the whole row.
    pub fn whole(&self) -> String {
        let blocks = (0..self.row.blocks.len()).map(|place| self.block(place));
        let blocks: String = blocks.collect();
        let checked = if self.marks.has(self.row.id) { " checked" } else { "" };
        format!(
            "<article class=\"course-row\" data-row=\"{id}\" data-testid=\"course-row\" data-value=\"{id}\"><h2>{}</h2>{blocks}\
             <label class=\"course-done\"><input type=\"checkbox\" data-tick=\"{id}\"{checked}><span>{}</span></label></article>",
            self.row.title(),
            self.book.word("done"),
            id = self.row.id,
        )
    }

    /// Renders one block in its frame.
    pub fn block(&self, place: usize) -> String {
        let (block, kind, name) = self.at(place);
        let inner = match kind {
            "text" => return self.row.paragraphs(name),
            "link" => return blocks::link(self.row, name, block),
            "figure" => self.figure(block, name),
            "exercise" => exercise::whole(self.book, self.row, (block, name), &self.inputs(place), self.seed),
            "checklist" => blocks::checklist(self.row, name, self.marks),
            "notes" => blocks::notes(self.row, name),
            "quiz" => blocks::quiz(self.row, name),
            "table" => blocks::table(self.row, name),
            "sample" => blocks::sample(self.book, block),
            "tree" => format!(
                "<div data-out>{}</div>",
                tree::tree(self.book, self.row, (block, name), &["start"])
            ),
            _ => return String::new(),
        };
        let link = format!(
            "<a class=\"course-anchor\" href=\"#/course?row={}&amp;figure={name}\" aria-label=\"{}\">#</a>",
            self.row.id,
            self.book.word("link_figure")
        );
        let title = self.row.line(name);
        let class = if kind == "exercise" {
            "card course-block course-exercise"
        } else {
            "card course-block"
        };
        format!(
            "<section class=\"{class}\" data-block=\"{place}\" data-kind=\"{kind}\" data-name=\"{name}\"><h3>{title}{link}</h3>{inner}</section>"
        )
    }

    fn at(&self, place: usize) -> (&'a Value, &'a str, &'a str) {
        let block = &self.row.blocks[place];
        let (kind, name) = name_of(block);
        (block, kind, name)
    }

    /// Returns the inputs of a block.
    pub fn inputs(&self, place: usize) -> Vec<Input> {
        let (block, kind, name) = self.at(place);
        inputs(block, name, self.given, self.seed.filter(|_| kind == "exercise"))
    }

    fn figure(&self, block: &Value, name: &str) -> String {
        let place = self.row.place(name).unwrap_or_default();
        let inputs = self.inputs(place);
        format!(
            "{}{}<div data-out>{}</div><div data-cases>{}</div>{}",
            self.row.paragraphs(&format!("{name}.text")),
            figure::fields(self.book, self.row, block, &inputs),
            self.results(place),
            self.cases(place),
            element("div", "course-gap", &self.row.paragraphs(&format!("{name}.gap"))),
        )
    }

    /// Renders the part of a block that changes with its inputs.
    pub fn results(&self, place: usize) -> String {
        let (block, kind, name) = self.at(place);
        let inputs = self.inputs(place);
        if kind == "exercise" {
            return exercise::task(self.row, name, &inputs);
        }
        match figure::sheet(block, &inputs) {
            Ok(sheet) => {
                figure::lines(self.book, self.row, block, &inputs, &sheet)
                    + &figure::drawings(self.book, self.row, block, &inputs, &sheet)
            }
            Err(_) => element("p", "muted", &self.book.word("no_result")),
        }
    }

    /// Renders the simulated setups of a block.
    pub fn cases(&self, place: usize) -> String {
        let (block, _, name) = self.at(place);
        let known = |query: &str| self.known.get(query);
        cases::table(
            self.book,
            self.row,
            (block, name),
            &self.inputs(place),
            &known,
            &self.names,
        )
    }

    /// Renders the solution of an exercise.
    pub fn solution(&self, place: usize) -> String {
        let (block, _, name) = self.at(place);
        exercise::solution(self.book, self.row, (block, name), &self.inputs(place))
    }

    /// Renders the hint with this index, from 0.
    pub fn hint(&self, place: usize, number: usize) -> Option<String> {
        exercise::hint(self.row, self.at(place).2, number)
    }

    /// Judges an answer to an exercise.
    pub fn check(&self, place: usize, typed: &str) -> Verdict {
        let (block, _, name) = self.at(place);
        exercise::check(self.book, self.row, (block, name), &self.inputs(place), typed)
    }

    /// Renders a decision tree after walking these nodes.
    pub fn tree(&self, place: usize, path: &[&str]) -> String {
        let (block, _, name) = self.at(place);
        tree::tree(self.book, self.row, (block, name), path)
    }

    /// Queries of the row's setups without a result yet, without duplicates.
    pub fn unknown(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for place in 0..self.row.blocks.len() {
            let inputs = self.inputs(place);
            let new = cases::queries(self.at(place).0, &inputs).filter(|query| self.known.get(query).is_none());
            for query in new {
                if !all.contains(&query) {
                    all.push(query);
                }
            }
        }
        all
    }
}

impl Book {
    /// Renders the list of all rows, with the current one marked and the finished ones ticked.
    pub fn contents(&self, here: &str, marks: &Marks) -> String {
        let mut out = String::new();
        for (part, rows) in self.parts() {
            let (mut links, mut open) = (String::new(), part == here);
            for row in rows {
                let current = if row.id == here { " aria-current=\"page\"" } else { "" };
                open |= row.id == here;
                let tick = if marks.has(row.id) { "✓ " } else { "" };
                links += &format!(
                    "<li><a href=\"#/course?row={}\"{current}>{tick}{}</a></li>",
                    row.id,
                    row.title()
                );
            }
            let open = if open { " open" } else { "" };
            out += &format!(
                "<details{open}><summary>{}</summary><ol>{links}</ol><a class=\"small\" href=\"#/course?row={part}\">{}</a></details>",
                self.part_title(part),
                self.word("handout"),
            );
        }
        let (done, of) = marks.done(self);
        format!(
            "<p class=\"muted small\" data-testid=\"course-progress\" data-value=\"{done}\">{}</p>{out}",
            self.word_with("progress", &format!("{done} / {of}"))
        )
    }

    /// Returns the previous and the next row.
    pub fn neighbours(&self, id: &str) -> (Option<Row<'_>>, Option<Row<'_>>) {
        let place = self.rows().position(|row| row.id == id);
        let before = place.and_then(|place| self.rows().take(place).last());
        let after = place.and_then(|place| self.rows().nth(place + 1));
        (before, after)
    }

    /// Renders links to the previous and the next row.
    pub fn turn(&self, id: &str) -> String {
        let link = |row: Option<Row>, key: &str| {
            row.map(|row| {
                format!(
                    "<a href=\"#/course?row={}\" data-turn=\"{key}\"><span class=\"muted small\">{}</span>{}</a>",
                    row.id,
                    self.word(key),
                    row.title()
                )
            })
        };
        let (before, after) = self.neighbours(id);
        let links = [link(before, "previous"), link(after, "next")];
        element("div", "course-turn", &links.into_iter().flatten().collect::<String>())
    }

    /// Renders the message that there is no such row.
    pub fn missing(&self, id: &str) -> String {
        element("p", "", &self.word("missing").replace("{}", &escape(id)))
    }
}
