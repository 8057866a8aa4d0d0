//! What can be measured here, and what is missing.

use serde::Serialize;
use vramscope_engine::record::BenchedDevice;

use super::{Bench, Form, Interface};
use crate::backends::{Backend, cuda};
use crate::failure::Failure;
use crate::kernels::label;
use crate::output;

/// The card to measure.
///
/// # Errors
/// When there is none; the message says what was looked for, and what to do.
pub fn backend(wanted: Interface) -> Result<Box<dyn Backend>, Failure> {
    let mut reasons = Vec::new();
    if wanted != Interface::Portable {
        match cuda::find().card {
            Ok(card) => return Ok(Box::new(card)),
            Err(why) => reasons.push(format!("NVIDIA: {why}")),
        }
    }
    if wanted != Interface::Cuda {
        match portable(wanted) {
            Ok(card) => return Ok(card),
            Err(why) => reasons.push(format!("portable: {why}")),
        }
    }
    Err(Failure::Broken(format!(
        "no GPU can be measured here. {}. `vramscope bench --list` says what was looked for",
        reasons.join("; ")
    )))
}

/// An adapter of Vulkan, Metal or DirectX 12. A processor that plays a GPU is taken only where that was
/// asked for: its times are no GPU's.
#[cfg(feature = "portable")]
fn portable(wanted: Interface) -> Result<Box<dyn Backend>, String> {
    let gpu = crate::backends::portable::find()?;
    match gpu.is_software() && wanted != Interface::Portable {
        true => Err(format!("only {} was found, which is no GPU", gpu.device().name)),
        false => Ok(Box::new(gpu)),
    }
}

#[cfg(not(feature = "portable"))]
fn portable(_: Interface) -> Result<Box<dyn Backend>, String> {
    Err("this program was built without it".into())
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
/// When standard output cannot be written, or no kernel has such a name.
pub fn list(bench: &Bench) -> Result<(), Failure> {
    let found = cuda::find();
    let mut libraries: Vec<SeenLibrary> = found.libraries.into_iter().map(SeenLibrary::of).collect();
    let portable = portable(Interface::Portable);
    libraries.push(SeenLibrary {
        name: "Vulkan, Metal or DirectX 12",
        purpose: "GPUs that are not NVIDIA's",
        found: portable.is_ok(),
        state: portable.as_ref().map_or_else(Clone::clone, |gpu| gpu.device().name),
    });
    let auto = bench.backend == Interface::Auto && found.card.is_ok();
    let cuda = bench.backend == Interface::Cuda || auto;
    let device = match (cuda, &found.card) {
        (true, card) => card.as_ref().map(Backend::device).map_err(Clone::clone),
        (false, _) => self::portable(bench.backend).map(|gpu| gpu.device()),
    };
    let by_portable = bench.backend == Interface::Portable || (!cuda && device.is_ok());
    let nvidia = found.card.err().filter(|_| bench.backend != Interface::Portable);
    let seen = Seen {
        reason: device
            .as_ref()
            .err()
            .map(|why| nvidia.map_or_else(|| why.clone(), |nvidia| format!("NVIDIA: {nvidia}"))),
        device: device.ok(),
        libraries,
        kernels: bench.chosen(by_portable)?.iter().map(label::label).collect(),
    };
    match bench.format {
        Form::Json => output::print_json(&seen),
        Form::Csv | Form::Text => output::print(&text(&seen)),
    }
}

impl SeenLibrary {
    fn of(sighting: cuda::Sighting) -> Self {
        Self {
            name: sighting.name,
            purpose: sighting.purpose,
            found: sighting.state.is_ok(),
            state: sighting.state.unwrap_or_else(|why| why),
        }
    }
}

fn text(seen: &Seen) -> String {
    let mut text = String::new();
    match (&seen.device, &seen.reason) {
        (Some(device), _) => text += &format!("{}\n", super::show::card(device)),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("not looked for");
            text += &format!("No GPU can be measured here. {reason}.\n");
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
