use std::path::Path;

use crate::process::{program, run};
use crate::{Failure, dist, root, static_server, tools};

/// Widths in CSS pixels with the height that shows the whole page.
const SIZES: [(u32, u32); 2] = [(1440, 1500), (390, 3600)];

/// Names and paths of the pages.
const PAGES: [(&str, &str); 2] = [("plan", "/"), ("attention", "/attention")];

/// Draws every built page at two widths, in both themes and two languages.
///
/// # Errors
/// When there is no browser or no built page.
pub fn shots() -> Result<(), Failure> {
    let browser = tools::browser()?;
    let address = static_server::start(dist(), 0)?;
    let folder = root().join("target/shots");
    std::fs::create_dir_all(&folder)?;
    for (width, height) in SIZES {
        for theme in ["light", "dark"] {
            for lang in ["en", "zh-CN"] {
                for (name, path) in PAGES {
                    let url = format!("http://{address}/#{path}?theme={theme}&lang={lang}");
                    let file = folder.join(format!("{name}-{width}-{theme}-{lang}.png"));
                    shot(&browser.chromium, &url, &file, (width, height))?;
                }
            }
        }
    }
    Ok(())
}

fn shot(chromium: &Path, url: &str, file: &Path, (width, height): (u32, u32)) -> Result<(), Failure> {
    run(program(chromium)
        .args(["--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"])
        .args(["--virtual-time-budget=5000", "--force-device-scale-factor=2"])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--screenshot={}", file.display()))
        .arg(url))
}
