//! Tests the first load of the page.

use crate::page::with_page;

#[tokio::test]
async fn the_page_shows_a_run_and_logs_no_error() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let verdict = page.value("verdict").present().await?;
        assert!(["fits", "tight", "oom"].contains(&verdict.as_str()), "{verdict}");
        let allocated: u64 = page.value("peak-allocated").present().await?.parse().expect("a number");
        let reserved: u64 = page.value("peak-reserved").present().await?.parse().expect("a number");
        assert!(allocated > 0 && reserved >= allocated, "{allocated} of {reserved}");
        assert_eq!(page.errors().await?, Vec::<String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_breakdown_adds_up_to_the_peak_and_opens() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.find("breakdown-row").await?;
        let sum = "return [...document.querySelectorAll('[data-testid=breakdown-row].depth-1')]\
                   .reduce((sum, row) => sum + BigInt(row.dataset.value), 0n).toString()";
        let peak = page.value("peak-allocated").present().await?;
        page.script::<String>(sum).is(peak).await?;
        let rows = "return document.querySelectorAll('[data-testid=breakdown-row]').length";
        let count = || page.script::<usize>(rows);
        let before = count().until(|count| *count > 0).await?;
        page.run("document.querySelector('.depth-2 .twist').click()").await?;
        page.until("rows", count, |now| *now > before).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_page_asks_no_other_host() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let script = "return performance.getEntriesByType('resource').map(e => e.name)";
        let asked = page
            .script::<Vec<String>>(script)
            .until(|asked| !asked.is_empty())
            .await?;
        let foreign: Vec<_> = asked.iter().filter(|url| !url.starts_with(&page.origin)).collect();
        assert_eq!(foreign, Vec::<&String>::new());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_timeline_is_drawn_with_a_pixel_for_each_of_the_screens() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.see("timeline-place").await?;
        page.find("timeline").await?;
        let script = "const c = document.querySelector('.canvas'), box = c.getBoundingClientRect();\
                      const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;\
                      return [c.width / (box.width * devicePixelRatio), new Set(new Uint32Array(data.buffer)).size]";
        let read = || page.script::<(f64, u64)>(script);
        // The chart is drawn in a later frame than its figures; an empty chart has a single colour.
        let (sharpness, _) = page
            .until("sharpness and colours", read, |(_, colours)| *colours > 20)
            .await?;
        assert!((sharpness - 1.0).abs() < 0.01, "{sharpness}");
        Ok(())
    })
    .await;
}
