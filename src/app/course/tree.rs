//! Decision trees: the current question, and the whole tree as a diagram.

use std::iter::once;

use serde_json::Value;

use super::blocks::anchor;
use super::book::{Book, Row, items};
use super::html::inline;

/// A tree of a row's questions. Each node leads to one node per answer, or is the address of a page.
struct Tree<'a> {
    row: Row<'a>,
    name: &'a str,
    nodes: Option<&'a Value>,
}

/// Renders a decision tree after walking `path`, which includes the root.
pub fn tree(book: &Book, row: Row, (block, name): (&Value, &str), path: &[&str]) -> String {
    let nodes = block.get("nodes");
    let tree = Tree { row, name, nodes };
    let mut out = String::from("<ol class=\"course-path\">");
    for pair in path.windows(2) {
        let place = tree.next(pair[0]).position(|next| next == pair[1]);
        let answer = tree.answer(pair[0], place.unwrap_or_default());
        out += &format!("<li>{} <strong>{answer}</strong></li>", tree.words(pair[0]));
    }
    let last = path.last().copied().unwrap_or("start");
    out += &format!("<li class=\"course-here\"><p>{}</p>", tree.words(last));
    out += &tree.address(last).map_or_else(
        || tree.answers(last),
        |to| anchor("course-leaf", to, &book.word("go_there")),
    );
    out += "</li></ol>";
    if path.len() > 1 {
        out += &format!(
            "<button type=\"button\" class=\"tool\" data-act=\"restart\">{}</button>",
            book.word("restart")
        );
    }
    out + "<ul class=\"course-tree\">" + &tree.branch(&["start"], "", path) + "</ul>"
}

impl<'a> Tree<'a> {
    fn node(&self, node: &str) -> Option<&'a Value> {
        self.nodes?.get(node)
    }

    /// Text of a node.
    fn words(&self, node: &str) -> String {
        self.row.line(&format!("{}.{node}", self.name))
    }

    /// Nodes that it leads to.
    fn next(&self, node: &str) -> impl Iterator<Item = &'a str> {
        items(self.node(node)).iter().filter_map(Value::as_str)
    }

    /// Address of the page that it ends at.
    fn address(&self, node: &str) -> Option<&'a str> {
        self.node(node).and_then(Value::as_str)
    }

    /// Answer that leads to the child at this index.
    fn answer(&self, node: &str, place: usize) -> String {
        let answers = self.row.list(&format!("{}.{node}.to", self.name));
        inline(answers.get(place).and_then(Value::as_str).unwrap_or_default())
    }

    /// Renders a button for each answer.
    fn answers(&self, node: &str) -> String {
        let button = |(place, to)| {
            let answer = self.answer(node, place);
            format!("<button type=\"button\" class=\"tool\" data-act=\"go\" data-to=\"{to}\">{answer}</button>")
        };
        self.next(node).enumerate().map(button).collect()
    }

    /// Renders the diagram below the last node of `way`, reached by `answer`; nodes on the walked path are marked.
    fn branch(&self, way: &[&str], answer: &str, path: &[&str]) -> String {
        let last = way.last().copied().unwrap_or_default();
        let (on, here) = (path.starts_with(way), path == way);
        let class = if on { " class=\"on-path\"" } else { "" };
        let current = if here { " aria-current=\"step\"" } else { "" };
        let led = if answer.is_empty() {
            String::new()
        } else {
            format!("<b>{answer}</b> ")
        };
        let mut out = format!(
            "<li{class}><button type=\"button\" data-act=\"go\" data-path=\"{}\"{current}>{led}{}</button>",
            way.join(" "),
            self.words(last)
        );
        let below: String = self
            .next(last)
            .enumerate()
            .map(|(place, next)| {
                let way: Vec<&str> = way.iter().copied().chain(once(next)).collect();
                self.branch(&way, &self.answer(last, place), path)
            })
            .collect();
        if !below.is_empty() {
            out += &format!("<ul>{below}</ul>");
        }
        out + "</li>"
    }
}
