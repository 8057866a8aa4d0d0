//! Finds or installs Chromium and its driver, for the tests in a real browser.

use std::path::PathBuf;

use super::system_package;
use crate::Failure;
use crate::process::find;

/// A browser and the driver that controls it.
#[derive(Debug, Clone)]
pub struct Browser {
    /// Chromium or Chrome.
    pub chromium: PathBuf,
    /// `chromedriver` of the same release.
    pub driver: PathBuf,
}

/// Finds the browser, or installs it if this is Debian and the user is root.
///
/// # Errors
/// If it is missing and cannot be installed; the message says what to install.
pub fn browser() -> Result<Browser, Failure> {
    if let Some(found) = look() {
        return Ok(found);
    }
    system_package::install(&["chromium", "chromium-driver"])?;
    look().ok_or_else(|| {
        Failure::new(
            "the browser tests need Chromium and chromedriver on PATH; \
             on Debian: apt-get install chromium chromium-driver",
        )
    })
}

fn look() -> Option<Browser> {
    Some(Browser {
        chromium: find(&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])?,
        driver: find(&["chromedriver"])?,
    })
}
