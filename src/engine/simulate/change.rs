//! What to change in a setup that is refused, by the names of its settings.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

/// What to change in a setup, by the names of its settings. Its `Display` is English: "set `loss` to full".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Settings, each with the value to give it.
    Set(Vec<(Cow<'static, str>, Cow<'static, str>)>),
    /// Settings that stay at what they are without being named.
    LeaveOut(Vec<Cow<'static, str>>),
}

impl Change {
    /// One setting with the value to give it.
    pub fn set(name: &'static str, value: &'static str) -> Self {
        Self::Set(vec![(Cow::Borrowed(name), Cow::Borrowed(value))])
    }

    /// One setting that is not named.
    pub fn leave_out(name: &'static str) -> Self {
        Self::LeaveOut(vec![Cow::Borrowed(name)])
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(all) => {
                let each: Vec<String> = all.iter().map(|(name, value)| format!("`{name}` to {value}")).collect();
                write!(f, "set {}", listed(&each))
            }
            Self::LeaveOut(all) => {
                let each: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "leave {} out", listed(&each))
            }
        }
    }
}

/// "a", "a and b", "a, b and c".
fn listed(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// Changes behind a reason, of which each ends it: "; set `loss` to full, or leave `compile` out".
pub(super) fn behind(ways: &[Change]) -> String {
    let each: Vec<String> = ways.iter().map(Change::to_string).collect();
    if each.is_empty() {
        return String::new();
    }
    format!("; {}", each.join(", or "))
}
