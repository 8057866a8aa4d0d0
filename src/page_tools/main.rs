//! `page-tools`: splits a compiled program of the page into chunks, and writes the script that starts it.
//!
//! The libraries behind `wasm-split-cli` and `wasm-bindgen`. Their command lines bring servers and test runners along,
//! which take minutes to compile; and of the libraries `Cargo.lock` names versions that fit the program's.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;
use wasm_split_cli_support::{Options, transform};

const HELP: &str = "\
usage: page-tools split PROGRAM.wasm FOLDER
       page-tools bind PROGRAM.wasm FOLDER [--keep-lld-exports]";

/// Name of what is written, without extension.
const NAME: &str = "program";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["split", program, folder] => split(program.as_ref(), folder.as_ref()),
        ["bind", program, folder] => bind(program.as_ref(), folder.as_ref(), false),
        ["bind", program, folder, "--keep-lld-exports"] => bind(program.as_ref(), folder.as_ref(), true),
        _ => Err(HELP.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("page-tools: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Splits a program at its split points into `program.wasm`, a file for each chunk, and the script that loads those.
fn split(program: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let wasm = std::fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let (main, script) = (folder.join(format!("{NAME}.wasm")), format!("./{NAME}.js"));
    let mut options = Options::new(&wasm);
    options.output_dir = folder;
    options.main_out_path = &main;
    options.main_module = &script;
    options.target.web();
    transform(options)?;
    Ok(())
}

/// Writes `program.js` and `program_bg.wasm`.
fn bind(program: &Path, folder: &Path, keep_lld_exports: bool) -> Result<(), Box<dyn Error>> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(program).web(true)?.out_name(NAME).typescript(false);
    bindgen.keep_lld_exports(keep_lld_exports).generate(folder)?;
    Ok(())
}
