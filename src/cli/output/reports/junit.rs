//! Formats checked runs as a report of tests in JUnit's XML, which GitLab, Jenkins, Azure and others show.
//!
//! The elements are those that the schema of Jenkins' xUnit plugin allows (`junit-10.xsd`): a run that does not fit is a
//! `failure`, one that cannot be read an `error`, and one of which nothing is known is `skipped`.

use super::document::{CheckDocument, CheckedRun};
use crate::outcome::Outcome;

/// Formats all runs as one suite of tests.
pub fn render(document: &CheckDocument) -> String {
    let of = |outcomes: &[Outcome]| {
        let all = document.runs.iter();
        all.filter(|run| outcomes.contains(&run.outcome)).count()
    };
    let (tests, target) = (document.runs.len(), escaped(&document.target));
    let (failures, errors) = (of(&[Outcome::Oom, Outcome::OverBudget]), of(&[Outcome::Error]));
    let skipped = of(&[Outcome::NotKnown]);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out += &format!("<testsuites name=\"vramscope\" {counts}>\n");
    out += &format!("  <testsuite name=\"GPU memory on {target}\" {counts} skipped=\"{skipped}\">\n");
    out.extend(document.runs.iter().map(|run| case(run, &target)));
    out + "  </testsuite>\n</testsuites>\n"
}

fn case(run: &CheckedRun, target: &str) -> String {
    let (name, message) = (escaped(&run.run), escaped(&run.message));
    let word = run.outcome.word();
    let inside = match run.outcome {
        Outcome::Fits | Outcome::Tight => format!("<system-out>{word}: {message}</system-out>"),
        Outcome::NotKnown => format!("<skipped message=\"{message}\"/>"),
        Outcome::OverBudget | Outcome::Oom => format!("<failure type=\"{word}\" message=\"{message}\"/>"),
        Outcome::Error => format!("<error type=\"{word}\" message=\"{message}\"/>"),
    };
    format!("    <testcase classname=\"{target}\" name=\"{name}\">{inside}</testcase>\n")
}

/// Escapes text for elements and attributes, and leaves out what XML 1.0 has no way to write.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // In an attribute a reader would make blanks of them.
            '\n' => out += "&#10;",
            '\t' => out += "&#9;",
            '\u{fffe}' | '\u{ffff}' => {}
            char if char.is_control() => {}
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_xml_cannot_write_is_left_out() {
        assert_eq!(
            escaped("a<b> & \"c\"\n\u{1b}[31md\u{0}"),
            "a&lt;b&gt; &amp; &quot;c&quot;&#10;[31md"
        );
    }
}
