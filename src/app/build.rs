//! Turns `locales/LANGUAGE/NAMESPACE.json` into the module of translations.
//!
//! This is what `leptos_i18n_build` does, without the export of ICU data that the page does not
//! use: that crate brings a hundred others. A key that one language lacks stops the build.

#![allow(clippy::disallowed_methods, reason = "a build script runs natively")]

use std::error::Error;
use std::path::PathBuf;

use leptos_i18n_parser::parse_locales::options::{Config, ParseOptions};
use leptos_i18n_parser::parse_locales::parse_locales;

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::new("en")?
        .add_locales(["zh-CN", "zh-TW"])?
        .add_namespaces(namespaces()?)?
        .parse_options(ParseOptions::new().interpolate_display(true));
    let parsed = parse_locales(None, config)?;
    for file in parsed.tracked_files.iter().flatten() {
        println!("cargo::rerun-if-changed={file}");
    }
    for fault in parsed.diag.warnings().iter() {
        println!("cargo::error={fault}");
    }
    for fault in parsed.diag.errors().iter() {
        println!("cargo::error={fault}");
    }
    let quiet = "#![allow(missing_docs, unused, clippy::all)]".parse()?;
    let code = leptos_i18n_codegen::gen_code(&parsed, None, false, Some(&quiet), false)?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("translations.rs"), code.to_string())?;
    Ok(())
}

/// The files of the English words: what the other languages must have too.
fn namespaces() -> Result<Vec<String>, Box<dyn Error>> {
    let folder = PathBuf::from("locales/en");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}
