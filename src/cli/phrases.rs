//! English phrases that the command line shares with the page, by subject and key.

#![allow(
    dead_code,
    missing_docs,
    non_upper_case_globals,
    non_camel_case_types,
    clippy::useless_format,
    reason = "names of phrases, of which the page uses more"
)]

include!(concat!(env!("OUT_DIR"), "/phrases.rs"));

/// Returns a phrase: `phrase!(subject.key)`, or with its gaps filled, `phrase!(subject.key, gap = value)`.
macro_rules! phrase {
    ($subject:ident.$key:ident) => {
        $crate::phrases::$subject::$key
    };
    ($subject:ident.$key:ident, $($gap:ident = $value:expr),+ $(,)?) => {
        String::from($crate::phrases::$subject::$key { $($gap: $value.to_string()),+ })
    };
}
pub(crate) use phrase;
