//! Lists the phrases of findings in every language, so that the program can carry them. English findings are those of the command
//! line.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::path::{Path, PathBuf};

use vramscope_phrases::LANGUAGES;

/// Findings in English, which `vramscope-diagnose` says.
const FINDINGS: &str = "../diagnose/finding/words/en.json";

fn main() -> Result<(), Box<dyn Error>> {
    let locales = Path::new("../app/locales");
    let mut listed = String::from("[\n");
    for (place, language) in LANGUAGES.iter().enumerate() {
        let own = language.file(locales, "diagnose/finding.json");
        let findings = match place == 0 || (language.is_partial && !own.exists()) {
            true => PathBuf::from(FINDINGS),
            false => own,
        };
        println!("cargo::rerun-if-changed={}", findings.display());
        let file = findings
            .canonicalize()
            .map_err(|e| format!("{}: {e}", findings.display()))?;
        listed += &format!("    ({:?}, include_str!({file:?})),\n", language.tag);
    }
    listed += "]\n";
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("words.rs"), listed)?;
    Ok(())
}
