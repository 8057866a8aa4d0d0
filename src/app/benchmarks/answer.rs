//! Interprets a server's answers about published benchmark records. `vramscope serve` uses the same addresses as the
//! files of `vramscope export`, so the page treats all hosts alike.

use vramscope_benchmark::{List, Record};

/// Outcome of a request to the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Fetched<T> {
    /// The requested value.
    Here(T),
    /// No records are published beside this page.
    NothingHere,
    /// Reading requires a token; `true` if one was sent but not accepted.
    Closed(bool),
    /// The host cannot be reached.
    Unreachable,
    /// The host is busy and asks to retry later.
    Busy,
    /// Any other failure, described.
    Odd(String),
}

/// A received response.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// HTTP status; 0 if there was no response.
    pub status: u16,
    /// Body.
    pub text: &'a str,
    /// True if a token was sent.
    pub with_token: bool,
}

/// Address of the list of records, or of its continuation after `place`.
pub fn list_after(place: Option<i64>) -> String {
    match place {
        None => "data/records.json".into(),
        Some(place) => format!("data/records.json?before={place}"),
    }
}

/// Address of a record.
pub fn record_at(id: &str) -> String {
    format!("data/records/{id}.json")
}

impl<T> Fetched<T> {
    /// Drops the value and keeps the outcome.
    pub fn without(self) -> Fetched<()> {
        match self {
            Self::Here(_) => Fetched::Here(()),
            Self::NothingHere => Fetched::NothingHere,
            Self::Closed(with_token) => Fetched::Closed(with_token),
            Self::Unreachable => Fetched::Unreachable,
            Self::Busy => Fetched::Busy,
            Self::Odd(why) => Fetched::Odd(why),
        }
    }
}

impl Asked<'_> {
    /// Parses the response as a list.
    pub fn list(self) -> Fetched<List> {
        self.read(|text| serde_json::from_str(text).map_err(|error| error.to_string()))
    }

    /// Parses the response as a record.
    pub fn record(self) -> Fetched<Record> {
        self.read(|text| Record::read(text).map_err(|error| error.to_string()))
    }

    fn read<T>(self, read: impl Fn(&str) -> Result<T, String>) -> Fetched<T> {
        // A host without the file may answer with an HTML page instead.
        let is_page = self.text.trim_start().starts_with('<');
        match self.status {
            0 => Fetched::Unreachable,
            200 if is_page => Fetched::NothingHere,
            200 => read(self.text).map_or_else(Fetched::Odd, Fetched::Here),
            401 | 403 => Fetched::Closed(self.with_token),
            404 | 410 => Fetched::NothingHere,
            429 | 502..=504 => Fetched::Busy,
            status => Fetched::Odd(status.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, text: &str) -> Asked<'_> {
        Asked {
            status,
            text,
            with_token: false,
        }
    }

    #[test]
    fn each_answer_is_what_it_means() {
        let list = r#"{"records":[{"id":"a","device":"NVIDIA H200","backend":"cuda","tool_version":"0.1.0",
            "quick":true,"complete":true,"results":3,"measured":2,"bytes":900}],"next":7}"#;
        let Fetched::Here(read) = answer(200, list).list() else {
            panic!("a list")
        };
        assert_eq!((read.records[0].device.as_str(), read.next), ("NVIDIA H200", Some(7)));
        for (status, text, wanted) in [
            (0, "", Fetched::Unreachable),
            (404, "{}", Fetched::NothingHere),
            (200, "\n<!doctype html>", Fetched::NothingHere),
            (401, "{}", Fetched::Closed(false)),
            (429, "{}", Fetched::Busy),
            (503, "{}", Fetched::Busy),
            (500, "{}", Fetched::Odd("500".into())),
        ] {
            assert_eq!(answer(status, text).list(), wanted, "{status}");
        }
        assert!(matches!(answer(200, "{").list(), Fetched::Odd(why) if why.contains("EOF")));
        assert!(matches!(answer(200, "{}").record(), Fetched::Odd(why) if why.contains("missing")));
        let refused = Asked {
            with_token: true,
            ..answer(401, "")
        };
        assert_eq!(refused.record(), Fetched::Closed(true));
    }

    #[test]
    fn what_export_writes_is_read() {
        let record = include_str!("../../../tests/data/records/example.json");
        assert!(matches!(answer(200, record).record(), Fetched::Here(record) if record.results.len() == 6));
        assert_eq!(list_after(None), "data/records.json");
        assert_eq!(list_after(Some(12)), "data/records.json?before=12");
        assert_eq!(record_at("ab"), "data/records/ab.json");
    }
}
