//! `cargo xtask COMMAND`: the repository's own commands.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]

use std::process::ExitCode;

use xtask::Failure;
use xtask::commands::{self, Build};

const HELP: &str = "\
The repository's own commands. Each installs what it needs first: into .tools, or, for a browser,
with the system's package manager.

  cargo xtask serve [PORT]   build the page, serve it on 127.0.0.1 and open it
  cargo xtask test [ARGS]    build the page and pass every test; ARGS go to cargo nextest; --fast first: only those of
                             libraries, predictions and what has changed, without a page, a browser or a server;
                             --local first: with the page as serve builds it, minutes sooner
  cargo xtask recorder       the recorder's own tests, in Python
  cargo xtask agents         the tests of what agents and notebooks are told, in Python
  cargo xtask dry-run-tools [NAME…]  a dry run of each training tool in environments made from nothing: gigabytes, an hour
  cargo xtask wheel          build the wheel and use it in a fresh environment
  cargo xtask build          build the page into dist/; --quick: for a look while developing, larger and slower
  cargo xtask docs           the manual as a site with search, in target/site
  cargo xtask release        binary, wheel and page of a release, with checksums, in target/release-files; --check: the crates
                             that are published, packed and built as others would
  cargo xtask lint           rustfmt and clippy, native and WebAssembly
  cargo xtask table          the table of measured against predicted in tests/data, made anew
  cargo xtask plans          the ready plans in tests/data, made anew: minutes
  cargo xtask gallery [ID…]  recordings of the gallery in src/gallery, made anew; --python PATH: not the tests' Python;
                             --from FOLDER: packs recordings that are there; --unpack ID: one as .vram.gz into target
  cargo xtask bench-wasm     how long the largest estimate takes in WebAssembly, by Node.js
  cargo xtask measure        bytes and times of a visit to the page, in a real browser
  cargo xtask shots          screenshots of the built page into target/shots
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    if rest.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let done = match command {
        "serve" => commands::serve(rest),
        "test" => commands::test(rest),
        "build" => Build::of(rest).and_then(commands::build),
        "docs" => commands::docs(),
        "release" => commands::release(rest),
        "lint" => commands::lint(),
        "table" => commands::table(),
        "recorder" => commands::recorder(),
        "agents" => commands::agents(),
        "dry-run-tools" => commands::dry_run_tools(rest),
        "wheel" => commands::wheel(),
        "plans" => commands::plans(),
        "gallery" => commands::gallery(rest),
        "bench-wasm" => commands::bench_wasm(),
        "measure" => commands::measure(),
        "shots" => commands::shots(),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no command `{other}`\n\n{HELP}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
