//! Tests layout stability: space is reserved for late content, so that nothing jumps.

use std::time::Duration;

use crate::accessible::set_width;
use crate::page::with_page;

/// Viewport widths: wide, two columns, tablet, phone.
const WIDTHS: [u32; 4] = [1440, 900, 600, 390];

/// Layout shift that a page may have at once, and in all; Google rates up to 0.1 in all as good.
const SHIFT: f64 = 0.02;
const ALL_SHIFTS: f64 = 0.05;

/// Returns Chromium's layout shifts, each the fraction of the window that moved, times the distance, and what moved.
const SHIFTS: &str = "
    const done = arguments[arguments.length - 1];
    const name = node => node ? node.nodeName + '.' + (node.className ?? '') : 'gone';
    const told = shift => shift.sources.map(({ node, previousRect, currentRect }) =>
        `${name(node)} from ${previousRect.y} to ${currentRect.y}`);
    const say = list => done([list.getEntries().map(shift => shift.value), list.getEntries().flatMap(told).join(', ')]);
    new PerformanceObserver(say).observe({ type: 'layout-shift', buffered: true });
    // Nothing moved at all.
    setTimeout(() => done([[], '']), 500);";

#[tokio::test]
async fn pages_come_without_jumps() {
    let pages = [
        ("#/?model=gpt2", ".what-if-group"),
        ("#/?model=qwen2.5-vl-7b", ".what-if-group"),
        ("#/recommend?model=gpt2", ".plans-ready"),
        ("#/attention", ".results > .card"),
        ("#/recorded", "[data-testid=gallery]"),
        ("#/diagnose", ".results > .card"),
        ("#/course", ".results > *"),
        ("#/course?row=L.batch", ".course-cases .course-stack"),
        ("#/benchmarks", ".results > .card"),
    ];
    with_page("#/?model=llava-1.5-7b", async |page| {
        for width in WIDTHS {
            set_width(page, width).await?;
            for (fragment, last) in pages {
                page.go(fragment).await?;
                let is_there = format!("return document.querySelector(`{last}`) !== null");
                let there = || page.script::<bool>(is_there.as_str());
                page.until(fragment, there, |there| *there).await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
                let (shifts, what): (Vec<f64>, String) = page.promise(SHIFTS, vec![]).await?;
                let is_still = shifts.iter().all(|shift| *shift < SHIFT) && shifts.iter().sum::<f64>() < ALL_SHIFTS;
                assert!(is_still, "{fragment} moves by {shifts:?} on {width} pixels: {what}");
            }
        }
        Ok(())
    })
    .await;
}

/// Records the position of the chart below the changes, from its first frame until changes are tried and times
/// estimated.
const CHART: &str = "
    const done = arguments[arguments.length - 1];
    const places = [];
    const look = () => {
        const chart = document.querySelector('.card:has(> .what-if)')?.nextElementSibling;
        if (chart) places.push(chart.getBoundingClientRect().top + window.scrollY);
        const over = document.querySelector('.what-if[data-over=true] > .what-if-group');
        const time = document.querySelector('[data-testid=time-body][aria-busy=false] > .time-lines');
        if (over && time) done(places);
        else requestAnimationFrame(look);
    };
    look();";

/// Records the height of the entries, from the first frame with results until the late code has been read.
const ENTRIES: &str = "
    const done = arguments[arguments.length - 1];
    const heights = [];
    const look = () => {
        const height = document.querySelector('.controls')?.getBoundingClientRect().height;
        if (document.querySelector('.results > .headline')) heights.push(height);
        if (globalThis.codeIsHere && heights.length > 0) done(heights);
        else requestAnimationFrame(look);
    };
    look();";

#[tokio::test]
async fn changes_and_times_come_where_room_was_left() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.run("localStorage.setItem('vramscope.time', '1')").await?;
        for width in WIDTHS {
            set_width(page, width).await?;
            for model in ["gpt2", "qwen2.5-vl-7b"] {
                page.open_address("about:blank").await?;
                page.open_address(&format!("{}#/?model={model}", page.origin)).await?;
                let places: Vec<f64> = page.promise(CHART, vec![]).await?;
                let first = places.first().expect("the chart was there");
                let moved = places.iter().map(|place| (place - first).abs()).fold(0.0, f64::max);
                // Out of a window height of 900, with any fonts: neither size is known in advance.
                assert!(
                    moved < 112.0,
                    "{model}, {width} pixels wide: the chart moves by {moved}"
                );
            }
        }
        Ok(())
    })
    .await;
}

/// Delays the code that the page itself fetches in parts: the worker fetches the same parts and is first.
const LATE_CODE: &str = "
    const now = globalThis.fetch;
    globalThis.fetch = async (...what) => {
        if (!`${what[0]}`.includes('/chunks/')) return now(...what);
        await new Promise(done => setTimeout(done, 1000));
        const response = await now(...what);
        setTimeout(() => { globalThis.codeIsHere = true; }, 500);
        return response;
    };";

/// On a phone the entries stand between the verdict and the other results: they must not change once those are shown,
/// even where the page has not read the model yet.
#[tokio::test]
async fn the_entries_above_the_results_keep_their_height_where_code_is_late() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        page.before_load(LATE_CODE).await?;
        set_width(page, 390).await?;
        for model in ["gpt2", "qwen2.5-vl-7b"] {
            page.open_address("about:blank").await?;
            page.open_address(&format!("{}#/?model={model}", page.origin)).await?;
            let mut heights: Vec<f64> = page.promise(ENTRIES, vec![]).await?;
            heights.dedup();
            assert_eq!(heights.len(), 1, "{model}: the heights are {heights:?}");
        }
        Ok(())
    })
    .await;
}

/// The space reserved for changes collapses if they are stopped.
#[tokio::test]
async fn no_room_is_kept_for_what_was_stopped() {
    with_page("#/?model=llava-1.5-7b", async |page| {
        let stop = "new MutationObserver(() => document.querySelector('[data-testid=stop]')?.click())
            .observe(document, { subtree: true, childList: true })";
        page.before_load(stop).await?;
        page.go("#/?model=Qwen/Qwen2.5-VL-72B-Instruct&seq=8192").await?;
        let height =
            "return document.querySelector('.what-if[data-over=true]:empty')?.getBoundingClientRect().height ?? null";
        let height = || page.script::<Option<f64>>(height);
        page.until("the room", height, |height| *height == Some(0.0)).await?;
        Ok(())
    })
    .await;
}
