//! Reads the files that the page offers for download.

use thirtyfour::error::WebDriverResult;

use crate::Page;

/// Clicks a button that saves a file; returns the file's name and text.
///
/// The page's policy forbids requests to blobs, so the blob is captured when its URL is created.
pub async fn text(page: &Page, testid: &str) -> WebDriverResult<(String, String)> {
    page.driver.execute(CATCH_BLOB, vec![]).await?;
    let click = format!("document.querySelector('[data-testid={testid}]').click()");
    page.driver.execute(&click, vec![]).await?;
    let read = || async {
        page.driver
            .execute("return window.savedFile", vec![])
            .await?
            .convert::<Option<(String, String)>>()
    };
    let found = page.until(testid, read, Option::is_some).await?;
    Ok(found.unwrap_or_default())
}

const CATCH_BLOB: &str = "window.savedFile = null; let kept;\
    const make = URL.createObjectURL; URL.createObjectURL = blob => { kept = blob; return make.call(URL, blob) };\
    HTMLAnchorElement.prototype.click = function () {\
    const name = this.download; kept.text().then(text => window.savedFile = [name, text]) }";
