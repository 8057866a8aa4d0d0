//! Decision trees: questions that lead to questions, and at last to the address of a page.

use serde_json::Value;

use super::book::{Block, items};

/// Name of the first question.
pub const START: &str = "start";

/// A decision tree of a block. Each node leads to one node per answer, or is the address of a page.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a>(Block<'a>);

/// A choice at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// Words of the answer.
    pub words: &'a str,
    /// Node that the answer leads to.
    pub to: &'a str,
}

impl<'a> Tree<'a> {
    /// The tree of a block.
    pub fn of(block: Block<'a>) -> Self {
        Self(block)
    }

    /// Text of a node.
    pub fn words(self, node: &str) -> &'a str {
        self.0.text(node)
    }

    /// Answers to a question, in order; none at a node that ends the tree.
    pub fn choices(self, node: &str) -> Vec<Choice<'a>> {
        let next = items(self.node(node)).iter().filter_map(Value::as_str);
        let words = self.0.texts(&format!("{node}.to"));
        let words = words.chain(std::iter::repeat(""));
        next.zip(words).map(|(to, words)| Choice { words, to }).collect()
    }

    /// Address of the page that a node ends at.
    pub fn address(self, node: &str) -> Option<&'a str> {
        self.node(node).and_then(Value::as_str)
    }

    /// Questions on the way along `path`, each with the answer that was given.
    pub fn answered(self, path: &[&str]) -> Vec<(&'a str, &'a str)> {
        let step = |pair: &[&str]| {
            let choices = self.choices(pair[0]);
            let choice = choices.iter().find(|choice| choice.to == pair[1]);
            (self.words(pair[0]), choice.map_or("", |choice| choice.words))
        };
        path.windows(2).map(step).collect()
    }

    fn node(self, node: &str) -> Option<&'a Value> {
        self.0.data.get("nodes")?.get(node)
    }
}
