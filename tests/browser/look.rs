//! Tests forced colours and printing.

use serde_json::json;
use thirtyfour::Key;
use thirtyfour::common::print::PrintParameters;

use crate::page::with_page;

#[tokio::test]
async fn forced_colours_leave_the_bars_their_kinds() {
    with_page("#/?model=gpt2", async |page| {
        let media = json!({"features": [{"name": "forced-colors", "value": "active"}]});
        page.driver.cdp().send_raw("Emulation.setEmulatedMedia", media).await?;
        page.find("peak-allocated").await?;
        let colours = "return new Set([...document.querySelectorAll('.memory-bar .bar-piece')]
            .map(e => getComputedStyle(e).backgroundColor)).size";
        let colours: usize = page.driver.execute(colours, vec![]).await?.convert()?;
        assert!(colours >= 4, "{colours} colours");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_printed_report_has_the_setup_and_no_controls_on_two_pages() {
    with_page("#/?theme=dark", async |page| {
        page.find("peak-allocated").await?;
        // The key that prints: the timeline comes with the first press.
        page.driver.action_chain().send_keys(Key::Control + "").perform().await?;
        page.find("timeline").await?;
        let media = json!({"media": "print"});
        page.driver.cdp().send_raw("Emulation.setEmulatedMedia", media).await?;
        let seen = "return ['.controls', '.head-tools', '.export-tools', '.command', '.verdict', '.figures', '.breakdown', '.canvas']
            .map(s => document.querySelector(s).getBoundingClientRect().height > 0)";
        let seen = || async { page.driver.execute(seen, vec![]).await?.convert::<Vec<bool>>() };
        // The breakdown appears shortly after the peak.
        let whole = [false, false, false, true, true, true, true, true];
        page.until("the report", seen, |seen| *seen == whole).await?;
        let ground = "return getComputedStyle(document.querySelector('.card')).backgroundColor";
        let ground: String = page.driver.execute(ground, vec![]).await?.convert()?;
        assert_eq!(ground, "rgb(255, 255, 255)", "ink is dark on paper");
        let paper = page.driver.print_page(PrintParameters::default()).await?;
        let pages = paper.windows(11).filter(|w| w == b"/Type /Page").count();
        let trees = paper.windows(12).filter(|w| w == b"/Type /Pages").count();
        assert!((1..=2).contains(&(pages - trees)), "{} pages", pages - trees);
        Ok(())
    })
    .await;
}
