//! Blocks without numbers of their own: lists to tick, notes, questions, tables, trees, samples, links.

use serde_json::Value;

use super::book::{Book, Row, items, text};
use super::figure::scrolled;
use super::html::{element, escape, inline};
use super::marks::Marks;

/// A list to tick.
pub fn checklist(row: Row, name: &str, marks: &Marks) -> String {
    let item = |(tick, html): (String, String)| {
        let checked = if marks.has(&tick) { " checked" } else { "" };
        format!("<li><label><input type=\"checkbox\" data-tick=\"{tick}\"{checked}><span>{html}</span></label></li>")
    };
    element(
        "ul",
        "course-checklist",
        &row.checklist(name).map(item).collect::<String>(),
    )
}

/// Pairs of a list's items, as HTML.
fn pairs(row: Row, name: &str) -> Vec<(String, String)> {
    let half = |item: &Value, n: usize| inline(item.get(n).and_then(Value::as_str).unwrap_or_default());
    let all = row.list(&format!("{name}.items")).iter();
    all.map(|item| (half(item, 0), half(item, 1))).collect()
}

/// Terms with what is to be known of them.
pub fn notes(row: Row, name: &str) -> String {
    let all = pairs(row, name).into_iter();
    element(
        "dl",
        "course-notes",
        &all.map(|(term, note)| format!("<dt>{term}</dt><dd>{note}</dd>"))
            .collect::<String>(),
    )
}

/// Questions whose answers open.
pub fn quiz(row: Row, name: &str) -> String {
    let all = pairs(row, name).into_iter();
    let question = |(question, answer)| {
        format!("<details class=\"course-quiz\"><summary>{question}</summary><p>{answer}</p></details>")
    };
    all.map(question).collect()
}

/// A table; the first of its rows is the head.
pub fn table(row: Row, name: &str) -> String {
    let rows = row
        .list(&format!("{name}.rows"))
        .iter()
        .enumerate()
        .map(|(place, cells)| {
            let cells = items(Some(cells)).iter().enumerate().map(|(column, cell)| {
                let text = inline(cell.as_str().unwrap_or_default());
                match (place, column) {
                    (0, _) => format!("<th scope=\"col\">{text}</th>"),
                    (_, 0) => format!("<th scope=\"row\">{text}</th>"),
                    _ => element("td", "", &text),
                }
            });
            element("tr", "", &cells.collect::<String>())
        });
    scrolled(&element("table", "course-table", &rows.collect::<String>()))
}

/// A text to copy.
pub fn sample(book: &Book, block: &Value) -> String {
    format!(
        "<pre class=\"course-sample\" tabindex=\"0\">{}</pre><button type=\"button\" class=\"tool\" data-act=\"copy\">{}</button>",
        escape(text(block, "content")),
        book.word("copy")
    )
}

/// A link to another page.
pub fn link(row: Row, name: &str, block: &Value) -> String {
    element("p", "", &anchor("", text(block, "to"), &row.line(name)))
}

fn anchor(testid: &str, to: &str, words: &str) -> String {
    format!(
        "<a class=\"course-link\" data-testid=\"{testid}\" href=\"{}\">{words}</a>",
        escape(to)
    )
}

/// A decision tree as far as it is walked: `path` holds the nodes so far, the first included.
pub fn tree(book: &Book, row: Row, (block, name): (&Value, &str), path: &[&str]) -> String {
    let nodes = |node: &str| block.get("nodes").and_then(|nodes| nodes.get(node));
    let question = |node: &str| row.line(&format!("{name}.{node}"));
    let answer = |node: &str, place: usize| {
        let answers = row.list(&format!("{name}.{node}.to"));
        inline(answers.get(place).and_then(Value::as_str).unwrap_or_default())
    };
    let mut out = String::from("<ol class=\"course-path\">");
    for pair in path.windows(2) {
        let place = items(nodes(pair[0]))
            .iter()
            .position(|next| next == pair[1])
            .unwrap_or_default();
        out += &format!(
            "<li>{} <strong>{}</strong></li>",
            question(pair[0]),
            answer(pair[0], place)
        );
    }
    let last = path.last().copied().unwrap_or("start");
    out += &format!("<li class=\"course-here\"><p>{}</p>", question(last));
    match nodes(last) {
        Some(Value::String(to)) => out += &anchor("course-leaf", to, &book.word("go_there")),
        next => {
            for (place, to) in items(next).iter().filter_map(Value::as_str).enumerate() {
                out += &format!(
                    "<button type=\"button\" class=\"tool\" data-act=\"go\" data-to=\"{to}\">{}</button>",
                    answer(last, place)
                );
            }
        }
    }
    out += "</li></ol>";
    if path.len() > 1 {
        out += &format!(
            "<button type=\"button\" class=\"tool\" data-act=\"restart\">{}</button>",
            book.word("restart")
        );
    }
    out
}
