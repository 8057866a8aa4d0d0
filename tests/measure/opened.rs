//! Measures how the page reads a large file: time to the first picture, memory, and longest blocking of its main
//! thread.

use std::path::Path;
use std::time::Duration;

use thirtyfour::error::WebDriverResult;
use xtask::static_server::Server;

use crate::page::{Page, with_browser};

/// Records tasks that block the page, and the time when the first finding or curve is painted.
const WATCH: &str = "
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
        for (const task of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, task.duration);
    }).observe({ entryTypes: ['longtask'] });
    const input = document.querySelector('[data-testid=diagnose-files]');
    input.addEventListener('change', () => { globalThis.givenMs = performance.now(); }, true);
    new MutationObserver((_, observer) => {
        if (!document.querySelector('[data-testid=curve] path, [data-testid=finding]')) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => {
            globalThis.pictureMs = performance.now() - globalThis.givenMs;
        }));
    }).observe(document, { subtree: true, childList: true });";

/// Moves over the curve and zooms, and returns the longest frame.
const LOOK: &str = "
    const done = arguments[arguments.length - 1];
    const slider = document.querySelector('[data-testid=instant-slider]');
    if (!slider) return done(0);
    const { left, width, top } = slider.getBoundingClientRect();
    let frames = 0, last = performance.now(), longest = 0;
    const step = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        if (++frames > 120) return done(longest);
        slider.dispatchEvent(new PointerEvent('pointermove', { clientX: left + width * (frames % 100) / 100, clientY: top + 9, bubbles: true }));
        if (frames % 10 === 0) document.querySelector(`[data-testid=${frames < 80 ? 'v_zoom_in' : 'v_zoom_out'}]`).click();
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);";

/// Opens a file and prints the measurements.
pub async fn print(file: &Path, folder: &Path) {
    let size = std::fs::metadata(file).expect("the file is there").len();
    let server = Server::start(folder.to_owned(), 0).expect("a port is free");
    with_browser(&server.origin(), async |page| {
        page.let_scripts_take(Duration::from_secs(120)).await?;
        page.go("#/diagnose").await?;
        let input = page.find("diagnose-files").await?;
        let before = renderers_kib();
        page.run(WATCH).await?;
        input.send_keys(file.to_string_lossy()).await?;
        let picture = number(page, "pictureMs").await?;
        let frame: f64 = page.promise(LOOK, vec![]).await?;
        let longest = number(page, "longest").await?;
        let held = renderers_kib().saturating_sub(before) * 1024;
        println!("{:<44}{:>9.1} MB", "file", size as f64 / 1e6);
        println!("{:<44}{picture:>9.0} ms", "opened to first picture");
        println!(
            "{:<44}{:>9.1} MB ({:.2} times the file)",
            "memory beyond the page's own, at most",
            held as f64 / 1e6,
            held as f64 / size as f64
        );
        println!("{:<44}{longest:>9.0} ms", "longest task of the main thread");
        println!("{:<44}{frame:>9.0} ms", "longest frame while looking around");
        Ok(())
    })
    .await;
}

/// A number that the page's scripts leave, once it is there.
async fn number(page: &Page, name: &str) -> WebDriverResult<f64> {
    let wait = "const [name, done] = arguments;
        const wait = setInterval(() => {
            if (globalThis[name] == null) return;
            clearInterval(wait);
            done(globalThis[name]);
        }, 100)";
    page.promise(wait, vec![name.into()]).await
}

/// Peak memory in KiB of the browser's renderers that this program started.
fn renderers_kib() -> u64 {
    let Ok(all) = std::fs::read_dir("/proc") else { return 0 };
    let ids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| is_renderer(id) && is_ours(id))
        .filter_map(|id| field(id, "VmHWM:"))
        .sum()
}

fn is_renderer(id: u32) -> bool {
    std::fs::read(format!("/proc/{id}/cmdline"))
        .is_ok_and(|line| line.windows(15).any(|part| part == b"--type=renderer"))
}

fn is_ours(mut id: u32) -> bool {
    while id > 1 {
        if id == std::process::id() {
            return true;
        }
        id = field(id, "PPid:").map_or(0, |parent| parent as u32);
    }
    false
}

fn field(id: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}
