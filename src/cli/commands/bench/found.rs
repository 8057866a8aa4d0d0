//! What can be measured here, and what is missing.

use serde::Serialize;
use vramscope_engine::record::{BenchedDevice, Kernel};

use super::Form;
use crate::backends::{Backend, cuda};
use crate::failure::Failure;
use crate::kernels::label;
use crate::output;

/// The card to measure.
///
/// # Errors
/// When there is none; the message says what was looked for, and what to do.
pub fn backend() -> Result<Box<dyn Backend>, Failure> {
    let found = cuda::find();
    match found.card {
        Ok(card) => Ok(Box::new(card)),
        Err(why) => Err(Failure::Broken(format!(
            "no GPU can be measured here. NVIDIA: {why}. `vramscope bench --list` says what was looked for"
        ))),
    }
}

#[derive(Serialize)]
struct Seen {
    device: Option<BenchedDevice>,
    reason: Option<String>,
    libraries: Vec<SeenLibrary>,
    kernels: Vec<String>,
}

#[derive(Serialize)]
struct SeenLibrary {
    name: &'static str,
    purpose: &'static str,
    found: bool,
    state: String,
}

/// Says what was found, and which kernels would run.
///
/// # Errors
/// When standard output cannot be written.
pub fn list(kernels: &[Kernel], form: Form) -> Result<(), Failure> {
    let found = cuda::find();
    let libraries = found.libraries.into_iter().map(|sighting| SeenLibrary {
        name: sighting.name,
        purpose: sighting.purpose,
        found: sighting.state.is_ok(),
        state: sighting.state.unwrap_or_else(|why| why),
    });
    let seen = Seen {
        device: found.card.as_ref().ok().map(Backend::device),
        reason: found.card.err(),
        libraries: libraries.collect(),
        kernels: kernels.iter().map(label::label).collect(),
    };
    match form {
        Form::Json => output::print_json(&seen),
        Form::Csv | Form::Text => output::print(&text(&seen)),
    }
}

fn text(seen: &Seen) -> String {
    let mut text = String::new();
    match (&seen.device, &seen.reason) {
        (Some(device), _) => text += &format!("{}\n", super::show::card(device)),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("not looked for");
            text += &format!("No GPU can be measured here. NVIDIA: {reason}.\n");
        }
    }
    text += "\n";
    for library in &seen.libraries {
        let mark = if library.found { "found  " } else { "missing" };
        text += &format!(
            "{mark}  {}: {}\n         for {}\n",
            library.name, library.state, library.purpose
        );
    }
    text += &format!("\n{} kernels would run:\n", seen.kernels.len());
    for kernel in &seen.kernels {
        text += &format!("  {kernel}\n");
    }
    text
}
