//! What a command printed, as the result of a tool.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

use super::child::Said;

/// Long lists that an agent gets only if it asks for detail: they would fill its context.
const DETAILS: [&str; 6] = ["breakdown", "roofline", "by_kernel", "by_component", "ways", "evidence"];

/// Exit codes at which a command has answered: done, and those of a verdict.
const ANSWERED: [i32; 4] = [0, 3, 4, 5];

/// Makes a result of what a command printed: its JSON with the exit code and notes, or the error.
pub fn result(said: &Said, detail: bool) -> CallToolResult {
    let document = serde_json::from_str::<Value>(&said.out).ok();
    let notes = said.errors.trim();
    match (document, said.code) {
        (Some(document), Some(code)) if ANSWERED.contains(&code) => {
            let mut answer = match document {
                Value::Object(answer) => answer,
                other => Map::from_iter([("answer".to_owned(), other)]),
            };
            if !detail {
                leave_details_out(&mut answer);
            }
            answer.insert("exit_code".to_owned(), code.into());
            if !notes.is_empty() {
                answer.insert("notes".to_owned(), notes.lines().map(Value::from).collect());
            }
            CallToolResult::structured(Value::Object(answer))
        }
        (_, code) => {
            let code = code.map_or_else(|| "was ended".to_owned(), |code| format!("ended with exit code {code}"));
            let text = if notes.is_empty() {
                format!("vramscope {code}")
            } else {
                notes.to_owned()
            };
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
    }
}

fn leave_details_out(answer: &mut Map<String, Value>) {
    for key in DETAILS {
        answer.remove(key);
    }
    for value in answer.values_mut() {
        if let Value::Object(inner) = value {
            leave_details_out(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: Option<i32>, out: &str, errors: &str) -> Said {
        Said {
            code,
            out: out.into(),
            errors: errors.into(),
        }
    }

    #[test]
    fn an_answer_has_its_exit_code_and_notes() {
        let out = "{\"peak_allocated\": 5, \"breakdown\": [1], \"time\": {\"step_ms\": 2, \"roofline\": []}}";
        let answer = result(&said(Some(5), out, "note: tight\n"), false);
        let expected =
            serde_json::json!({"peak_allocated": 5, "time": {"step_ms": 2}, "exit_code": 5, "notes": ["note: tight"]});
        assert_eq!(answer.structured_content, Some(expected));
        let whole = result(&said(Some(0), out, ""), true);
        assert_eq!(
            whole.structured_content.expect("an answer")["breakdown"],
            serde_json::json!([1])
        );
    }

    #[test]
    fn a_refusal_is_an_error_with_its_words() {
        for ended in [
            said(Some(2), "", "error: no such card"),
            said(None, "{}", "error: no such card"),
        ] {
            let answer = result(&ended, false);
            assert_eq!(answer.is_error, Some(true));
            assert!(format!("{:?}", answer.content).contains("no such card"));
        }
    }
}
