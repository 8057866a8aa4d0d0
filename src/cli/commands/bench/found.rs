//! Finds the card to measure, and lists what is available and what is missing.

use std::collections::BTreeSet;

use serde::Serialize;
use vramscope_benchmark::{BenchedDevice, Class, Kernel};

use super::run::Machine;
use super::{Bench, Form, Interface};
use crate::backends::{Backend, cuda};
use crate::failure::Failure;
use crate::kernels::work::Work;
use crate::output;
use crate::output::list::{Edge, render};

/// Opens the card to measure.
///
/// # Errors
/// If there is none; the message says what was looked for, and what to do.
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

/// An adapter of Vulkan, Metal or DirectX 12. A CPU that emulates a GPU is only used if requested, since its times are
/// not those of a GPU.
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

/// Prints what was found, and the kernels that would run.
///
/// # Errors
/// If standard output cannot be written, or no kernel matches the given words.
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
    let by_cuda = bench.backend == Interface::Cuda || auto;
    let card: Result<Box<dyn Backend>, String> = match (by_cuda, found.card) {
        (true, card) => card.map(|card| Box::new(card) as Box<dyn Backend>),
        (false, Ok(_)) => self::portable(bench.backend),
        (false, Err(nvidia)) => self::portable(bench.backend).map_err(|why| match bench.backend {
            Interface::Portable => why,
            _ => format!("NVIDIA: {nvidia}"),
        }),
    };
    let host = super::host::find(bench.python.as_deref());
    libraries.push(SeenLibrary {
        name: "Python with PyTorch",
        purpose: "the host: how fast it issues kernels",
        found: host.is_ok(),
        state: host.map_or_else(|why| why, |found| found.describe()),
    });
    let machine = card
        .as_ref()
        .map_or_else(|_| Machine::unknown(bench.backend), |card| Machine::of(card.as_ref()));
    let chosen = bench.chosen(&machine)?;
    let seen = Seen {
        reason: card.as_ref().err().cloned(),
        device: card.ok().map(|card| card.device()),
        libraries,
        kernels: chosen.iter().map(Kernel::label).collect(),
    };
    match (bench.format, bench.all) {
        (Form::Json, _) => output::print_json(&seen),
        (_, true) => output::print(&(text(&seen) + &names(&seen))),
        (_, false) => output::print(&(text(&seen) + &groups(&chosen))),
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
    text
}

/// Names of all kernels, one per line.
fn names(seen: &Seen) -> String {
    let mut text = format!("\n{} kernels would run:\n", seen.kernels.len());
    for kernel in &seen.kernels {
        text += &format!("  {kernel}\n");
    }
    text
}

/// One line for each class: number of kernels, types, and range of sizes.
fn groups(kernels: &[Kernel]) -> String {
    let rows: Vec<[String; 5]> = Class::ALL
        .into_iter()
        .filter_map(|class| {
            let of_class: Vec<&Kernel> = kernels.iter().filter(|kernel| kernel.class == class).collect();
            let bytes = |kernel: &&&Kernel| Work::of(kernel).bytes;
            let ends = [of_class.iter().min_by_key(bytes)?, of_class.iter().max_by_key(bytes)?];
            let types: BTreeSet<_> = of_class.iter().filter_map(|kernel| kernel.precision).collect();
            let types: Vec<_> = types.into_iter().map(|precision| precision.name()).collect();
            let [from, to] = ends.map(|kernel| kernel.extents_label());
            Some([
                class.name().to_owned(),
                of_class.len().to_string(),
                types.join(" "),
                from.clone(),
                if from == to { String::new() } else { to },
            ])
        })
        .collect();
    let heads = [
        ("class", Edge::Left),
        ("kernels", Edge::Right),
        ("types", Edge::Left),
        ("from", Edge::Left),
        ("to", Edge::Left),
    ];
    let count = kernels.len();
    format!(
        "\n{count} kernels would run; --all names each.\n\n{}",
        render(heads, &rows)
    )
}
