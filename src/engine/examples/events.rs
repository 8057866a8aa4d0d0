//! Prints the events of the recorded steps of one case, to be held against an allocator trace.
//!
//! `cargo run --release -p vramscope-engine --example events -- '{"model":"gpt2","batch":2,"seq":512}'`

use std::io::Write;

use vramscope_engine::simulate::record;
use vramscope_engine::tape::Gpu;
use vramscope_engine::tape::log::{Event, Log};
use vramscope_engine::{Case, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = std::env::args().nth(1).ok_or("usage: events CASE.json")?;
    let case = Case::from_json(&text)?.ok_or("not a case")?;
    let run = record(&Model::from_case(&case)?, &case.setup, Gpu::H200);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(out, "=== model")?;
    for event in &run.build {
        line(&mut out, &run.log, *event)?;
    }
    for (name, step) in [("step 1", &run.first), ("step 2", &run.steady)] {
        let m = step.marks;
        let marks = [(0, "start"), (m.before_forward, "batch"), (m.after_forward, "forward")];
        let mut marks = marks
            .into_iter()
            .chain([(m.after_backward, "backward"), (m.after_optimizer, "optimizer")])
            .peekable();
        for (i, event) in step.events.iter().enumerate() {
            while let Some((_, label)) = marks.next_if(|(at, _)| *at == i) {
                writeln!(out, "=== {name} {label}")?;
            }
            line(&mut out, &run.log, *event)?;
        }
    }
    Ok(())
}

/// One event: a storage's birth with what it is, or its death.
fn line(out: &mut impl Write, log: &Log, event: Event) -> std::io::Result<()> {
    let id = event.storage();
    let birth = &log.births[id as usize];
    if event.is_birth() {
        let path = log.path(birth.scope);
        let (bytes, name, shape) = (birth.bytes, birth.name, &birth.shape[..]);
        writeln!(out, "A#{id} {bytes} | {name} @ {path} {shape:?}")
    } else {
        writeln!(out, "F#{id} {}", birth.bytes)
    }
}
