//! Formats what `doctor` found for people.

use vramscope_engine::format::gib;
use vramscope_engine::units::Bytes;

use super::document::{Card, DoctorDocument, Python};
use crate::output::text::{QUIET, STRONG, wrap};

/// Column of the values.
const INDENT: usize = 12;

/// Formats all that was found, then what is missing.
pub fn render(document: &DoctorDocument, width: usize) -> String {
    let mut out = String::new();
    let mut row = |name: &str, text: &str| {
        let lines = wrap(text, width.saturating_sub(INDENT)).join(&format!("\n{}", " ".repeat(INDENT)));
        out += &format!("{STRONG}{name:<INDENT$}{STRONG:#}{lines}\n");
    };
    let program = &document.vramscope;
    let build = if program.is_debug { ", not optimized" } else { "" };
    let path = program
        .path
        .as_ref()
        .map_or_else(String::new, |path| format!(", {path}"));
    let features = program.features.join(", ");
    row("vramscope", &format!("{} ({features}{build}){path}", program.version));
    let system = &document.system;
    let processors = system
        .processors
        .map_or_else(String::new, |count| format!(", {count} processors"));
    row("system", &format!("{} {}{processors}", system.os, system.arch));
    row("card", &document.card.as_ref().map_or_else(|| "none".to_owned(), card));
    for library in document.libraries.iter().filter(|library| library.is_found) {
        row("", &format!("{}: {}", library.name, library.state));
    }
    match &document.python {
        Some(python) => {
            row("python", &self::python(python));
            row("", &libraries(python));
        }
        None => row("python", "none"),
    }
    row("hub", &hub(document));
    if document.missing.is_empty() {
        return out + "\nNothing is missing.\n";
    }
    out += &format!("\n{STRONG}Missing{STRONG:#}\n");
    for missing in &document.missing {
        for (mark, text) in [
            ("- ", &missing.what),
            ("  without it there is no ", &missing.stops),
            ("  do: ", &missing.remedy),
        ] {
            let lines = wrap(&format!("{mark}{text}"), width).join("\n    ");
            let lines = if mark == "- " {
                lines
            } else {
                format!("{QUIET}{lines}{QUIET:#}")
            };
            out += &format!("{lines}\n");
        }
    }
    out
}

fn card(card: &Card) -> String {
    let mut words = vec![card.name.clone()];
    words.extend(card.memory.map(|memory| gib(Bytes::new(memory))));
    words.extend(
        card.compute_capability
            .as_ref()
            .map(|is| format!("compute capability {is}")),
    );
    words.extend(card.driver.as_ref().map(|driver| format!("driver {driver}")));
    words.extend(
        card.count
            .filter(|count| *count > 1)
            .map(|count| format!("{count} of them")),
    );
    words.push(match &card.known_as {
        Some(name) => format!("known as {name}"),
        None => "not among `vramscope gpus`".to_owned(),
    });
    words.join(", ")
}

fn python(python: &Python) -> String {
    let said = &python.surroundings;
    let torch = match &said.pytorch {
        None => "no PyTorch".to_owned(),
        Some(torch) => {
            let cuda = torch
                .cuda
                .as_ref()
                .map_or_else(|| "no CUDA".to_owned(), |cuda| format!("CUDA {cuda}"));
            let cards = match &torch.cards[..] {
                [] => "sees no card".to_owned(),
                cards => format!("sees {}", cards.join(", ")),
            };
            format!("PyTorch for {cuda}, {cards}")
        }
    };
    format!("{} {}, {}; {torch}", said.implementation, said.version, python.path)
}

fn libraries(python: &Python) -> String {
    let all = python.surroundings.libraries.iter();
    let all: Vec<String> = all.map(|(name, version)| format!("{name} {version}")).collect();
    match all.is_empty() {
        true => "no library that trains".to_owned(),
        false => all.join(", "),
    }
}

fn hub(document: &DoctorDocument) -> String {
    let hub = &document.hub;
    let mut words = vec![
        if hub.is_offline {
            "offline"
        } else {
            "asked for models that are not known"
        }
        .to_owned(),
    ];
    words.extend(hub.has_mirror.then(|| "by a mirror".to_owned()));
    words.push(
        if hub.has_token {
            "with a token"
        } else {
            "without a token"
        }
        .to_owned(),
    );
    words.push(format!("{} models kept", hub.cached_models));
    words.join(", ")
}
