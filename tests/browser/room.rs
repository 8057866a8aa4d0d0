//! What comes later has its room: nothing moves away under a hand.

use std::time::Duration;

use crate::accessible::set_width;
use crate::page::with_page;

/// Wide, two columns, a phone.
const WIDTHS: [u32; 3] = [1440, 900, 390];

/// Chromium's sum of layout shifts: shares of the window that moved, times how far. Its makers call 0.1 good.
const SHIFTS: &str = "
    const done = arguments[arguments.length - 1];
    const sum = list => list.getEntries().reduce((sum, shift) => sum + shift.value, 0);
    const name = node => node ? node.nodeName + '.' + (node.className ?? '') : 'gone';
    const told = shift => shift.sources.map(({ node, previousRect, currentRect }) =>
        `${name(node)} from ${previousRect.y} to ${currentRect.y}`);
    const say = list => done([sum(list), list.getEntries().flatMap(told).join(', ')]);
    new PerformanceObserver(say).observe({ type: 'layout-shift', buffered: true });
    // Nothing moved at all.
    setTimeout(() => done([0, '']), 500);";

#[tokio::test]
async fn pages_come_without_jumps() {
    let pages = [
        ("#/?model=gpt2", ".what-if-group"),
        ("#/recommend?model=gpt2", ".plans-ready"),
        ("#/attention", ".results > .card"),
        ("#/diagnose", ".results > .card"),
        ("#/course", ".results > *"),
        ("#/course?row=L.batch", ".course-cases .course-stack"),
        ("#/benchmarks", ".results > .card"),
    ];
    with_page("", async |page| {
        for width in WIDTHS {
            set_width(page, width).await?;
            for (fragment, last) in pages {
                page.go(fragment).await?;
                let is_there = format!("return document.querySelector(`{last}`) !== null");
                let there = || async { page.driver.execute(is_there.as_str(), vec![]).await?.convert::<bool>() };
                page.until(fragment, there, |there| *there).await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                let (moved, what): (f64, String) = page.driver.execute_async(SHIFTS, vec![]).await?.convert()?;
                assert!(moved < 0.05, "{fragment} moves by {moved} on {width} pixels: {what}");
            }
        }
        Ok(())
    })
    .await;
}

/// The place of the chart below them, first and last, once changes were tried and times estimated.
const CHART: &str = "
    const done = arguments[arguments.length - 1];
    let first = null;
    const look = () => {
        const chart = document.querySelector('.card:has(> .what-if)')?.nextElementSibling;
        const now = chart && chart.getBoundingClientRect().top + window.scrollY;
        first ??= now;
        if (document.querySelector('.what-if-group') && document.querySelector('.time-lines')) done([first, now]);
        else requestAnimationFrame(look);
    };
    look();";

#[tokio::test]
async fn changes_and_times_come_where_room_was_left() {
    with_page("", async |page| {
        page.driver
            .execute("localStorage.setItem('vramscope.time', '1')", vec![])
            .await?;
        for width in WIDTHS {
            set_width(page, width).await?;
            for model in ["gpt2", "qwen2.5-vl-7b"] {
                page.driver.goto("about:blank").await?;
                page.driver.goto(format!("{}#/?model={model}", page.origin)).await?;
                let [first, last]: [f64; 2] = page.driver.execute_async(CHART, vec![]).await?.convert()?;
                // An eighth of a window: neither has a size that is known before.
                assert!(
                    (last - first).abs() < 112.0,
                    "{model}, {width} pixels: {first}, then {last}"
                );
            }
        }
        Ok(())
    })
    .await;
}
