//! Renders blocks without numbers: checklists, notes, quizzes, tables, samples, links.

use serde_json::Value;

use super::book::{Book, Row, items, text};
use super::figure::scrolled;
use super::html::{element, escape, inline};
use super::marks::Marks;

/// Renders a checklist.
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

/// Pairs in a list's items, as HTML.
fn pairs(row: Row, name: &str) -> Vec<(String, String)> {
    let half = |item: &Value, n: usize| inline(item.get(n).and_then(Value::as_str).unwrap_or_default());
    let all = row.list(&format!("{name}.items")).iter();
    all.map(|item| (half(item, 0), half(item, 1))).collect()
}

/// Renders terms with their explanations.
pub fn notes(row: Row, name: &str) -> String {
    let all = pairs(row, name).into_iter();
    element(
        "dl",
        "course-notes",
        &all.map(|(term, note)| format!("<dt>{term}</dt><dd>{note}</dd>"))
            .collect::<String>(),
    )
}

/// Renders questions whose answers unfold.
pub fn quiz(row: Row, name: &str) -> String {
    let all = pairs(row, name).into_iter();
    let question = |(question, answer)| {
        format!("<details class=\"course-quiz\"><summary>{question}</summary><p>{answer}</p></details>")
    };
    all.map(question).collect()
}

/// Maximum number of columns that fit a phone; wider tables show each row as a block there.
const NARROW: usize = 3;

/// Renders a table; the first row is the head.
pub fn table<'a>(row: Row<'a>, name: &str) -> String {
    let mut rows = row.list(&format!("{name}.rows")).iter().map(|cells| items(Some(cells)));
    let plain = |cell: &'a Value| cell.as_str().unwrap_or_default();
    let heads: Vec<&str> = rows.next().unwrap_or_default().iter().map(plain).collect();
    let line = |cells: &'a [Value]| {
        let cells = cells.iter().zip(&heads).enumerate().map(|(column, (cell, head))| {
            let text = inline(plain(cell));
            if column == 0 {
                format!("<th scope=\"row\">{text}</th>")
            } else {
                format!("<td data-label=\"{}\">{text}</td>", escape(&head.replace('`', "")))
            }
        });
        element("tr", "", &cells.collect::<String>())
    };
    let head: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\">{}</th>", inline(head)))
        .collect();
    let body: String = rows.map(line).collect();
    let class = if heads.len() > NARROW {
        "course-table course-stacked"
    } else {
        "course-table"
    };
    scrolled(&format!(
        "<table class=\"{class}\"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    ))
}

/// Renders a text with a copy button.
pub fn sample(book: &Book, block: &Value) -> String {
    format!(
        "<pre class=\"course-sample\" tabindex=\"0\">{}</pre><button type=\"button\" class=\"tool\" data-act=\"copy\">{}</button>",
        escape(text(block, "content")),
        book.word("copy")
    )
}

/// Renders a link to another page.
pub fn link(row: Row, name: &str, block: &Value) -> String {
    element("p", "", &anchor("", text(block, "to"), &row.line(name)))
}

pub(super) fn anchor(testid: &str, to: &str, words: &str) -> String {
    format!(
        "<a class=\"course-link\" data-testid=\"{testid}\" href=\"{}\">{words}</a>",
        escape(to)
    )
}
