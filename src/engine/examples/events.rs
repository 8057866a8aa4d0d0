//! Prints the events of the recorded steps of one case, to be held against an allocator trace.
//!
//! `cargo run --release -p vramscope-engine --example events -- '{"model":"gpt2","batch":2,"seq":512}'`

use std::io::Write;

use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::{Case, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).ok_or("usage: events CASE.json")?;
    let case = Case::from_json(&text)?.ok_or("not a case")?;
    let run = record(&Model::from_case(&case)?, &case.setup, Gpu::H200);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut marks = vec![(run.after_model, "model".to_owned())];
    for (i, s) in run.steps.iter().enumerate() {
        let names = ["start", "batch", "forward", "backward", "optimizer", "zero_grad"];
        let at = [
            s.start,
            s.before_forward,
            s.after_forward,
            s.after_backward,
            s.after_optimizer,
            s.end,
        ];
        marks.extend(
            at.into_iter()
                .zip(names)
                .map(|(at, n)| (at, format!("step {} {n}", i + 1))),
        );
    }
    let mut marks = marks.into_iter().peekable();
    for (i, event) in run.log.events.iter().enumerate() {
        while let Some((_, name)) = marks.next_if(|(at, _)| *at == i) {
            writeln!(out, "=== {name}")?;
        }
        let id = event.storage();
        let birth = &run.log.births[id as usize];
        let (bytes, name) = (birth.bytes, birth.name);
        if event.is_birth() {
            writeln!(
                out,
                "A#{id} {bytes} | {name} @ {} {:?}",
                run.log.path(birth.scope),
                &birth.shape[..]
            )?;
        } else {
            writeln!(out, "F#{id} {bytes}")?;
        }
    }
    Ok(())
}
