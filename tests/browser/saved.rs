//! Reads the files that the page offers for download.

use thirtyfour::error::WebDriverResult;

use crate::Page;

/// Clicks a button that saves a file; returns the file's name and text.
///
/// The page's policy forbids requests to blobs, so the blob is captured when its URL is created.
pub async fn text(page: &Page, testid: &str) -> WebDriverResult<(String, String)> {
    page.run(CATCH_BLOB).await?;
    let click = format!("document.querySelector('[data-testid={testid}]').click()");
    page.run(&click).await?;
    let file = page.script::<Option<(String, String)>>("return window.savedFile");
    file.named(testid).present().await
}

const CATCH_BLOB: &str = "window.savedFile = null; let kept;\
    const make = URL.createObjectURL; URL.createObjectURL = blob => { kept = blob; return make.call(URL, blob) };\
    HTMLAnchorElement.prototype.click = function () {\
    const name = this.download; kept.text().then(text => window.savedFile = [name, text]) }";
