//! Generates a Rust name for every phrase in `locales/LANGUAGE/SUBJECT.json`, so that a misspelt phrase or one with the
//! wrong placeholders does not compile. A phrase missing from any language fails the build. Also makes the linker emit
//! the relocations that chunk splitting needs.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::path::{Path, PathBuf};

use vramscope_phrases::{Phrase, read};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=locales");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        // `wasm-split` needs relocations to split the program into chunks.
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
    }
    let phrases = read(Path::new("locales"))?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("phrases.rs"), code(&phrases))?;
    Ok(())
}

/// Subjects whose phrases are found by the names of what is declared: entries, their values, routes, and reasons.
const FOUND_BY_NAME: [&str; 7] = ["choice", "heading", "help", "lesson", "nav", "setup", "unshared"];

/// Generates a module per subject with a place per phrase; a phrase with placeholders becomes a type that names them.
fn code(phrases: &[Phrase]) -> String {
    let mut code = format!("pub const COUNT: usize = {};\n", phrases.len());
    let mut subject = "";
    for (place, phrase) in phrases.iter().enumerate() {
        if phrase.subject != subject {
            code += if subject.is_empty() { "" } else { "}\n" };
            subject = &phrase.subject;
            let is_found = FOUND_BY_NAME.contains(&subject);
            let unused = if is_found {
                "unused_imports, dead_code"
            } else {
                "unused_imports"
            };
            code += &format!("#[allow({unused})] pub mod {subject} {{ use super::*;\n");
            if is_found {
                code += &search(&phrases[place..], place);
            }
        }
        let (key, gaps) = (&phrase.key, &phrase.gaps);
        if gaps.is_empty() {
            code += &format!("pub const {key}: PhraseIndex = PhraseIndex({place});\n");
            continue;
        }
        let fields: String = gaps.iter().map(|gap| format!("pub {gap}: T, ")).collect();
        let values: String = gaps.iter().map(|gap| format!("self.{gap}, ")).collect();
        code += &format!(
            "pub struct {key}<T> {{ {fields} }}\n\
             impl<T> Filled<T> for {key}<T> {{\n\
             const PLACE: PhraseIndex = PhraseIndex({place});\n\
             fn values(self) -> Vec<T> {{ vec![{values}] }}\n}}\n"
        );
    }
    code + "}\n"
}

/// Generates a function that finds a phrase of a subject by its key. The phrases of a subject are sorted and lie in a row.
fn search(phrases: &[Phrase], first: usize) -> String {
    let subject = &phrases[0].subject;
    let keys: Vec<&str> = phrases
        .iter()
        .take_while(|phrase| phrase.subject == *subject)
        .map(|phrase| phrase.key.as_str())
        .collect();
    // Phrases are constants, whose names no variable of the function may have.
    format!("pub fn named(_key: &str) -> Option<PhraseIndex> {{ super::found(_key, &{keys:?}, {first}) }}\n")
}
