//! Gives every phrase of `locales/LANGUAGE/SUBJECT.json` its name in the program, so that one that is
//! misspelt, or filled with something else than its gaps, does not compile. A phrase that one language
//! lacks stops the build.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

#[path = "phrases.rs"]
mod phrases;

use std::error::Error;
use std::path::{Path, PathBuf};

use phrases::{Phrase, read};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=locales");
    println!("cargo::rerun-if-changed=phrases.rs");
    let phrases = read(Path::new("locales"))?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("phrases.rs"), code(&phrases))?;
    Ok(())
}

/// The subject whose phrases are found by their keys, as what is found in a file names them so.
const KEYED: &str = "finding";

/// A module for each subject; in it a place for each phrase, and for one with gaps a type that names them.
fn code(phrases: &[Phrase]) -> String {
    let mut code = format!("pub const COUNT: usize = {};\n", phrases.len());
    let (mut subject, mut keyed) = ("", String::new());
    for (place, phrase) in phrases.iter().enumerate() {
        if phrase.subject != subject {
            code += if subject.is_empty() { "" } else { "}\n" };
            subject = &phrase.subject;
            // One module of that name comes last.
            let name = if subject == KEYED { "unkeyed" } else { subject };
            code += &format!("#[allow(unused_imports)] pub mod {name} {{ use super::*;\n");
        }
        let (key, gaps) = (&phrase.key, &phrase.gaps);
        if subject == KEYED {
            keyed += &format!("(\"{key}\", Place({place})),");
            continue;
        }
        if gaps.is_empty() {
            code += &format!("pub const {key}: Place = Place({place});\n");
            continue;
        }
        let fields: String = gaps.iter().map(|gap| format!("pub {gap}: T, ")).collect();
        let values: String = gaps.iter().map(|gap| format!("self.{gap}, ")).collect();
        code += &format!(
            "pub struct {key}<T> {{ {fields} }}\n\
             impl<T> Filled<T> for {key}<T> {{\n\
             const PLACE: Place = Place({place});\n\
             fn values(self) -> Vec<T> {{ vec![{values}] }}\n}}\n"
        );
    }
    code + "}\n" + &format!("pub mod {KEYED} {{ use super::*; pub const PLACES: &[(&str, Place)] = &[{keyed}]; }}\n")
}
