//! A random walk through all pages and controls: nothing that a person presses may stop the page.
//!
//! The same steps each time. `WALK_STEPS=2000 cargo nextest run -p vramscope-tests --test browser random_walk` takes more,
//! and `WALK_SEED=7` others.

use std::collections::VecDeque;
use std::time::Duration;

use thirtyfour::error::WebDriverResult;

use crate::page::{Page, with_page};

/// Steps unless `WALK_STEPS` says otherwise.
const STEPS: u64 = 200;

/// Steps that a failure names.
const TOLD: usize = 25;

/// Does one random thing and returns what it was. Controls that open or save a file or leave the page are passed over.
/// Texts are those that people type, and some that no field accepts.
///
/// Chance is a linear congruential generator, of which a few numbers are thrown away first: those of seeds close to each
/// other begin alike.
const STEP: &str = r"
    let state = arguments[0] >>> 0;
    const chance = (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
    const any = (list) => list[chance(list.length)];
    for (let i = 0; i < 8; i += 1) chance(2);
    if (chance(40) === 0) {
        history.back();
        return 'back';
    }
    const routes = ['/', '/recommend', '/compare', '/attention', '/diagnose', '/benchmarks', '/recorded', '/course'];
    if (chance(60) === 0) {
        const route = any(routes);
        location.hash = `#${route}`;
        return `go ${route}`;
    }
    const dialog = document.querySelector('dialog[open]');
    const within = dialog ?? document;
    const shown = (element) => {
        const box = element.getBoundingClientRect();
        return box.width > 1 && box.height > 1 && getComputedStyle(element).visibility !== 'hidden';
    };
    const leaves = (element) =>
        element.closest('[download], [target=_blank], [data-testid^=save], [data-testid$=save], [data-testid=single-file]') ||
        (element.tagName === 'A' && !element.getAttribute('href')?.startsWith('#'));
    const all = [...within.querySelectorAll('button, a[href], select, summary, input, textarea, [role=option], [role=slider]')]
        .filter((element) => !element.disabled && element.type !== 'file' && shown(element) && !leaves(element));
    if (!all.length) return 'nothing';
    const element = any(all);
    const name = `${element.tagName} ${element.dataset.testid ?? element.id ?? ''} ${element.textContent.trim().slice(0, 30)}`;
    element.scrollIntoView({ block: 'center' });
    if (element.tagName === 'SELECT') {
        element.selectedIndex = chance(element.options.length);
        element.dispatchEvent(new Event('change', { bubbles: true }));
        return `choose ${element.value} in ${name}`;
    }
    const isText = element.tagName === 'TEXTAREA' || (element.tagName === 'INPUT' && element.type === 'text');
    if (isText) {
        const text = any(['1', '2', '8', '64', '4k', '0', '', '-1', 'x', '512, 1024', '720p', 'gpt2', 'h100', 'qwen 3b',
            '24x36', 'q_proj', '0.1', 'CUDA out of memory. Tried to allocate 2.50 GiB', '{}', 'lora', '99999999999999999999']);
        element.focus();
        element.value = text;
        element.dispatchEvent(new Event('input', { bubbles: true }));
        if (chance(2)) {
            for (const key of ['ArrowDown', 'Enter']) element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
            if (chance(2)) element.form?.requestSubmit();
        }
        element.blur();
        return `type ${text} into ${name}`;
    }
    element.focus();
    if (element.getAttribute('role') === 'option') {
        element.dispatchEvent(new MouseEvent('mousedown', { bubbles: true, cancelable: true }));
    } else if (element.getAttribute('role') === 'slider') {
        element.dispatchEvent(new KeyboardEvent('keydown', { key: any(['ArrowLeft', 'ArrowRight', 'Home', 'End']), bubbles: true, cancelable: true }));
    } else {
        element.click();
    }
    return `press ${name}`;
";

fn setting(name: &str, usual: u64) -> u64 {
    let told = std::env::var(name).ok();
    told.map_or(usual, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
    })
}

/// Does one step, and checks that the page shows no fault.
async fn step(page: &Page, seed: u64, told: &mut VecDeque<String>) -> WebDriverResult<()> {
    let what: String = page
        .promise(
            &format!("const done = arguments[1]; done((function () {{ {STEP} }})(arguments[0]))"),
            vec![seed.into()],
        )
        .await?;
    if told.len() == TOLD {
        told.pop_front();
    }
    told.push_back(what);
    // Long enough for an answer now and then, short enough to leave many unanswered.
    tokio::time::sleep(Duration::from_millis(30 + seed % 120)).await;
    let fault = "return document.querySelector('[data-testid=fault]')?.textContent ?? ''";
    let fault = page.script::<String>(fault).until(|_| true).await?;
    assert_eq!(fault, "", "after {told:#?}");
    Ok(())
}

#[tokio::test]
async fn a_random_walk_meets_no_fault() {
    let (steps, seed) = (setting("WALK_STEPS", STEPS), setting("WALK_SEED", 1));
    with_page("#/?model=gpt2&seq=256", async |page| {
        page.value("peak-allocated").present().await?;
        // Nothing leaves the page: no window is opened, no file saved; what the browser leaves to a person's own press, the
        // clipboard and installing, is not asked for.
        page.before_load(
            "window.open = () => null; HTMLAnchorElement.prototype.click = function () {};
            navigator.clipboard.writeText = async () => {};
            addEventListener('beforeinstallprompt', (event) => event.stopImmediatePropagation(), true)",
        )
        .await?;
        page.run("location.reload()").await?;
        page.value("peak-allocated").present().await?;
        let mut told = VecDeque::new();
        for i in 0..steps {
            step(page, seed * 1_000_003 + i * 7919, &mut told).await?;
        }
        let errors = page.errors().await?;
        assert_eq!(errors, Vec::<String>::new(), "after {told:#?}");
        Ok(())
    })
    .await;
}
