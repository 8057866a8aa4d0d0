//! Gives every phrase of `locales/LANGUAGE/SUBJECT.json` its name in the program, so that one that is
//! misspelt, or filled with something else than its gaps, does not compile. A phrase that one language
//! lacks stops the build. Has the linker keep what the program is cut into chunks by.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::path::{Path, PathBuf};

use vramscope_phrases::{Phrase, read};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=locales");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        // By these the program is cut into chunks.
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
    }
    let phrases = read(Path::new("locales"))?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("phrases.rs"), code(&phrases))?;
    Ok(())
}

/// A module for each subject; in it a place for each phrase, and for one with gaps a type that names them.
fn code(phrases: &[Phrase]) -> String {
    let mut code = format!("pub const COUNT: usize = {};\n", phrases.len());
    let mut subject = "";
    for (place, phrase) in phrases.iter().enumerate() {
        if phrase.subject != subject {
            code += if subject.is_empty() { "" } else { "}\n" };
            subject = &phrase.subject;
            code += &format!("#[allow(unused_imports)] pub mod {subject} {{ use super::*;\n");
        }
        let (key, gaps) = (&phrase.key, &phrase.gaps);
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
    code + "}\n"
}
