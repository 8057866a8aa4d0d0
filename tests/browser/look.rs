//! Tests forced colours and printing.

use serde_json::json;
use thirtyfour::Key;

use crate::page::with_page;

#[tokio::test]
async fn forced_colours_leave_the_bars_their_kinds() {
    with_page("#/?model=gpt2", async |page| {
        let media = json!({"features": [{"name": "forced-colors", "value": "active"}]});
        page.devtools("Emulation.setEmulatedMedia", media).await?;
        page.find("peak-allocated").await?;
        let colours = "return new Set([...document.querySelectorAll('.memory-bar .bar-piece')]
            .map(e => getComputedStyle(e).backgroundColor)).size";
        page.script::<usize>(colours).until(|colours| *colours >= 4).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_printed_report_has_the_setup_and_no_controls_on_three_pages() {
    with_page("#/?theme=dark", async |page| {
        page.find("peak-allocated").await?;
        // The key that prints: the timeline comes with the first press.
        page.keys(Key::Control + "").await?;
        page.find("timeline").await?;
        let media = json!({"media": "print"});
        page.devtools("Emulation.setEmulatedMedia", media).await?;
        let seen = "return ['.controls', '.head-tools', '.export-tools', '.command', '.verdict', '.figures', '.breakdown', '.canvas']
            .map(s => document.querySelector(s).getBoundingClientRect().height > 0)";
        let seen = || page.script::<Vec<bool>>(seen);
        // The breakdown appears shortly after the peak.
        let whole = [false, false, false, true, true, true, true, true];
        page.until("the report", seen, |seen| *seen == whole).await?;
        let ground = "return getComputedStyle(document.querySelector('.card')).backgroundColor";
        page.script::<String>(ground).is("rgb(255, 255, 255)").await?;
        let paper = page.print().await?;
        let pages = paper.windows(11).filter(|w| w == b"/Type /Page").count();
        let trees = paper.windows(12).filter(|w| w == b"/Type /Pages").count();
        assert!((1..=3).contains(&(pages - trees)), "{} pages", pages - trees);
        Ok(())
    })
    .await;
}
