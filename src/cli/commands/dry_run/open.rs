//! `--open`: the page with the recording, from this machine to its own browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use super::own_path;
use crate::commands::serve::wait_for;
use crate::failure::Failure;
use crate::server::{self, Page};

/// Flags of `--open`.
#[derive(Debug, Args)]
pub struct Open {
    /// Shows the recording in the browser, on the page, until Ctrl-C
    #[arg(long, conflicts_with_all = ["max", "vary", "against"])]
    open: bool,
    /// Folder of the built page for --open [default: dist/ here or in a folder above the program, where cargo xtask build
    /// leaves it]
    #[arg(long, value_name = "DIR", requires = "open")]
    page: Option<PathBuf>,
}

impl Open {
    /// Opens the page's folder, before a run takes its time; none without `--open`.
    ///
    /// # Errors
    /// If there is no page.
    pub fn page(&self) -> Result<Option<Page>, Failure> {
        if !self.open {
            return Ok(None);
        }
        if let Some(folder) = &self.page {
            return Page::open(folder).map(Some);
        }
        let program = own_path().unwrap_or_default();
        let above = program.ancestors().skip(1).map(|folder| folder.join("dist"));
        let built = std::iter::once(PathBuf::from("dist"))
            .chain(above)
            .find(|folder| folder.join("index.html").is_file());
        match built {
            Some(folder) => Page::open(&folder).map(Some),
            None => Err(Failure::Input(
                "--open needs the built page, which is not here: name its folder with --page DIR (`cargo xtask build` makes \
                 dist/), or keep the recording with -o run.vram.gz and drop it on the page elsewhere"
                    .into(),
            )),
        }
    }
}

/// Serves the page with the recording at `path` and opens it in the browser, until Ctrl-C.
///
/// # Errors
/// If the recording cannot be read, or nothing can be served.
pub fn show(page: Page, path: &Path) -> Result<(), Failure> {
    let recording = fs::read(path)?;
    wait_for(server::show(page, recording, |address| {
        anstream::eprintln!("vramscope dry-run: the recording is shown at {address} (Ctrl-C ends it)");
        browse(address);
    }))
}

/// Opens an address in the desktop's browser; where there is none, the address was said.
fn browse(address: &str) {
    let openers: &[&[&str]] = match cfg!(windows) {
        true => &[&["cmd", "/C", "start", ""]],
        false => &[&["xdg-open"], &["open"]],
    };
    for words in openers {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(address);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.spawn().is_ok() {
            return;
        }
    }
}
