//! Measures how long it takes from pasting a log of 1 MB to the first finding that is painted.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use thirtyfour::error::WebDriverResult;
use xtask::static_server::Server;

use crate::page::{Page, with_browser};
use crate::quantiles::Quantiles;

/// Bytes of the log.
const SIZE: usize = 1_000_000;
/// Number of visits whose first paste is timed.
const VISITS: usize = 7;
/// Number of pastes after the first one.
const AGAIN: usize = 7;
/// Pages on which it is pasted.
const PAGES: [(&str, &str); 2] = [("on Diagnose", "#/diagnose"), ("on Plan", "#/?model=gpt2&gpu=H200")];

/// Pastes a text, and answers with the milliseconds until its first finding is painted, and the longest task among them.
const PASTE: &str = "
    const [text, done] = arguments;
    let longest = 0;
    const tasks = new PerformanceObserver((list) => {
        for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
    });
    tasks.observe({ entryTypes: ['longtask'] });
    const data = new DataTransfer();
    data.setData('text/plain', text);
    for (const old of document.querySelectorAll('[data-testid=finding]')) old.dataset.isOld = '';
    const begin = performance.now();
    const observer = new MutationObserver(() => {
        if (!document.querySelector('[data-testid=finding]:not([data-is-old])')) return;
        observer.disconnect();
        requestAnimationFrame(() => {
            const { port1, port2 } = new MessageChannel();
            // A frame's tasks run once it is painted.
            port1.onmessage = () => {
                const painted = performance.now() - begin;
                setTimeout(() => { tasks.disconnect(); done([painted, longest]); }, 50);
            };
            port2.postMessage(null);
        });
    });
    observer.observe(document, { subtree: true, childList: true });
    document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));";

/// Pastes the log on each page, and prints the times.
pub async fn print(folder: &Path) {
    let log = log();
    println!("{:<34}{:>9}{:>9}{:>9}", "1 MB pasted, ms", "median", "p95", "most");
    for (name, address) in PAGES {
        let (mut first, mut again, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        for visit in 0..VISITS {
            let server = Server::start(folder.to_owned(), 0).expect("a port is free");
            with_browser(&server.origin(), async |page| {
                page.let_scripts_take(Duration::from_secs(60)).await?;
                page.go(address).await?;
                settle(page, address).await?;
                let (painted, longest) = paste(page, &log).await?;
                first.push(painted);
                tasks.push(longest);
                for _ in 0..if visit == 0 { AGAIN } else { 0 } {
                    again.push(paste(page, &log).await?.0);
                }
                Ok(())
            })
            .await;
        }
        println!(
            "{:<34}{}",
            format!("{name}, to the first finding"),
            Quantiles::of(&first)
        );
        println!("{:<34}{}", "  once more", Quantiles::of(&again));
        println!("{:<34}{}", "  longest task of the page", Quantiles::of(&tasks));
    }
}

/// Waits until the page is there, and for a moment more, as a person does who goes for a log.
async fn settle(page: &Page, address: &str) -> WebDriverResult<()> {
    let shown = if address.contains("diagnose") {
        "diagnose-text"
    } else {
        "peak-allocated"
    };
    page.find(shown).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

async fn paste(page: &Page, log: &str) -> WebDriverResult<(f64, f64)> {
    page.promise(PASTE, vec![json!(log)]).await
}

/// A log of a training that ends in an error, as tools write one.
fn log() -> String {
    let mut log = String::from("swift sft --model Qwen/Qwen2.5-VL-7B-Instruct --train_type lora --max_length 4096\n");
    for step in 1.. {
        if log.len() > SIZE {
            break;
        }
        let memory = 40.0 + f64::from(step % 7) / 10.0;
        writeln!(
            log,
            "{{'loss': 1.{:04}, 'grad_norm': 0.{:03}, 'learning_rate': 1e-4, 'memory(GiB)': {memory:.2}, \
             'epoch': 0.{step:05}, 'global_step/max_steps': '{step}/9000'}}",
            step * 7919 % 10_000,
            step * 31 % 1000
        )
        .expect("a string takes it");
    }
    log.push_str(
        "Traceback (most recent call last):\n  File \"/v/torch/autograd/graph.py\", line 829, in _engine_run_backward\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.12 GiB. GPU 0 has a total capacity of 79.11 GiB \
         of which 8.40 GiB is free. Including non-PyTorch memory, this process has 70.69 GiB memory in use. Of the \
         allocated memory 66.01 GiB is allocated by PyTorch, and 3.80 GiB is reserved by PyTorch but unallocated.\n",
    );
    log
}
