//! Looks for what `doctor` shows.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use vramscope_engine::device::Device;
use vramscope_hub::{HUGGING_FACE, Resolver, Settings};

use super::document::{Card, DoctorDocument, Hub, Library, Missing, Program, Python, Surroundings, System};
use crate::backends::{Backend, cuda};
use crate::failure::Failure;
use crate::recorder::{self, answer};

/// Longest wait for a Python, which imports PyTorch from a cold disk.
const LONGEST: Duration = Duration::from_secs(120);

/// Looks around: at this program, the system, the card, and a Python.
pub fn look(python: Option<&Path>) -> DoctorDocument {
    let mut missing = Vec::new();
    let found = cuda::find();
    let card = match found.card {
        Ok(card) => Some(self::card(&card)),
        Err(why) => {
            missing.push(no_card(&why));
            None
        }
    };
    let libraries = found.libraries.into_iter().map(|seen| Library {
        name: seen.name.to_owned(),
        purpose: seen.purpose.to_owned(),
        is_found: seen.state.is_ok(),
        state: seen.state.unwrap_or_else(|why| why),
    });
    let python = match self::python(python) {
        Ok(python) => {
            missing.extend(of_python(&python, card.is_some()));
            Some(python)
        }
        Err(gap) => {
            missing.push(gap);
            None
        }
    };
    DoctorDocument {
        vramscope: program(),
        system: System {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            processors: std::thread::available_parallelism().ok().map(usize::from),
        },
        card,
        libraries: libraries.collect(),
        python,
        hub: hub(),
        missing,
    }
}

fn program() -> Program {
    let features = [
        ("mcp", cfg!(feature = "mcp")),
        ("portable", cfg!(feature = "portable")),
        ("server", cfg!(feature = "server")),
    ];
    let built = features.into_iter().filter(|(_, is_there)| *is_there);
    Program {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        features: built.map(|(name, _)| name.to_owned()).collect(),
        is_debug: cfg!(debug_assertions),
        path: std::env::current_exe().ok().map(|path| shown(&path)),
    }
}

fn card(card: &impl Backend) -> Card {
    let device = card.device();
    Card {
        known_as: Device::by_name(&device.name).ok().map(|known| known.name.to_owned()),
        name: device.name,
        memory: device.memory_bytes,
        compute_capability: device.compute_capability,
        driver: device.driver,
        count: device.count,
    }
}

/// Nothing but measuring needs a card.
fn no_card(why: &str) -> Missing {
    Missing {
        what: format!("a card that can be measured: {why}"),
        stops: "`bench` and `watch`; estimates and dry runs need no card".to_owned(),
        remedy: "name the card of the run with --gpu (`vramscope gpus` lists them)".to_owned(),
    }
}

/// Finds the Python and has it say what it has.
fn python(named: Option<&Path>) -> Result<Python, Missing> {
    let stops = "`dry-run`, `record`, and the host's pace in `bench`";
    let gap = |failure: &Failure, remedy: &str| Missing {
        what: failure.to_string(),
        stops: stops.to_owned(),
        remedy: remedy.to_owned(),
    };
    let path = recorder::find(named).map_err(|failure| {
        gap(
            &failure,
            "activate the environment of your training, or name its Python with --python PATH",
        )
    })?;
    let folder =
        recorder::folder().map_err(|failure| gap(&failure, "set XDG_CACHE_HOME to a folder that can be written to"))?;
    let said = answer(Command::new(&path).arg(folder).arg("surroundings"), LONGEST);
    let read = said.and_then(|text| {
        // Libraries may greet before it.
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str::<Surroundings>(line).map_err(|error| format!("it printed no answer: {error}"))
    });
    match read {
        Ok(surroundings) => Ok(Python {
            path: shown(&path),
            surroundings,
        }),
        Err(why) => Err(Missing {
            what: format!("an answer of {}: {why}", shown(&path)),
            stops: stops.to_owned(),
            remedy: "run it alone to see what is wrong; Python 3.10 or newer is needed".to_owned(),
        }),
    }
}

/// What a Python lacks.
fn of_python(python: &Python, has_card: bool) -> Vec<Missing> {
    let of = |what: String, stops: &str, remedy: &str| Missing {
        what,
        stops: stops.to_owned(),
        remedy: remedy.to_owned(),
    };
    let Python { path, surroundings } = python;
    let Some(torch) = &surroundings.pytorch else {
        return vec![of(
            format!("PyTorch in {path}"),
            "`dry-run` and `record` of your own runs",
            "name the Python of your training with --python PATH, or let `vramscope dry-run --with TOOL` make an environment",
        )];
    };
    let mut all = Vec::new();
    if let Some(why) = &torch.error {
        all.push(of(
            format!("a PyTorch that can be imported: {why}"),
            "`dry-run` and `record`",
            "install it again in that environment; a processor's build is enough",
        ));
    } else if let Some(why) = &surroundings.recorder_fails {
        all.push(of(
            format!("a recorder that runs with this PyTorch: {why}"),
            "`dry-run` and `record`",
            "report it with the text of this command; docs/any-model.md lists the versions that are tested",
        ));
    }
    if has_card && torch.error.is_none() && !torch.sees_cuda {
        all.push(of(
            "a PyTorch that sees the card".to_owned(),
            "training on it; estimates and dry runs are not concerned",
            "install PyTorch's build for CUDA, or a driver that is new enough for it",
        ));
    }
    all
}

fn hub() -> Hub {
    let settings = Settings::of_environment();
    Hub {
        is_offline: settings.is_offline,
        has_mirror: settings.hugging_face != HUGGING_FACE,
        has_token: settings.token.is_some(),
        cached_models: Resolver::new(settings).cached().len(),
    }
}

/// A path without the name of the user's folder, since reports are public.
fn shown(path: &Path) -> String {
    let home = etcetera::home_dir().ok().filter(|home| home.components().count() > 1);
    let inside = home.as_ref().and_then(|home| path.strip_prefix(home).ok());
    let path = inside.map_or_else(|| path.to_owned(), |inside| PathBuf::from("~").join(inside));
    path.display().to_string()
}
