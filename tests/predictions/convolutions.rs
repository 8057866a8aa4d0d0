//! Compares the workspaces of cuDNN's convolutions with measurements on an H200, shape by shape.

use serde::Deserialize;
use vramscope_engine::dtype::DType;
use vramscope_engine::tape::{Gpu, Tape};
use vramscope_tests::measured::text;

/// Most bytes between a simulated and a measured workspace.
const MOST_APART: u64 = 1 << 20;

/// Largest share of workspaces that are not exact.
const MOST_INEXACT: f64 = 0.019;

/// A measured convolution: shapes of its input `x` and its weight `w`.
#[derive(Debug, Deserialize)]
struct Row {
    dtype: DType,
    x: Vec<u64>,
    w: Vec<u64>,
    /// Bytes of the convolution's workspace.
    forward: u64,
    /// Bytes of the workspace of its weight's gradient.
    gradient: u64,
}

fn rows() -> Vec<Row> {
    let text = text("convolutions.jsonl.gz");
    // The first line describes the machine.
    let rows = text.lines().skip(1).map(serde_json::from_str);
    rows.map(Result::unwrap).collect()
}

/// The engine's workspaces for the convolution and for its weight's gradient.
fn simulated(row: &Row) -> [u64; 2] {
    let t = Tape::new(Gpu::H200);
    let x = t.empty(&row.x[..], row.dtype, "x");
    let w = t.parameter(&row.w[..], row.dtype, "w");
    let out = t.conv_patches(&x, &w, None);
    let forward_end = t.mark();
    t.backward(&out);
    let log = t.finish();
    let workspace = |events: &[vramscope_engine::tape::log::Event]| {
        let allocations = events.iter().filter(|event| event.is_alloc());
        let allocations = allocations.map(|event| log.allocations[event.storage() as usize]);
        allocations
            .filter(|allocation| allocation.name == "cuDNN workspace")
            .map(|allocation| allocation.bytes)
            .sum()
    };
    [
        workspace(&log.events[..forward_end]),
        workspace(&log.events[forward_end..]),
    ]
}

/// Returns true for shapes whose workspace may differ from the measured one by more than [`MOST_APART`]: fewer than 768
/// channels, 32 × 32 kernels with 1,024 channels, and videos smaller than 126 × 126. No built-in model has such a shape.
fn may_differ(row: &Row) -> bool {
    let side = *row.x.last().unwrap();
    match row.w[..] {
        [1024, _, 32, _] => true,
        [width, ..] if width < 768 => true,
        [_, _, _, _, _] => side > 16 && side < 126,
        _ => false,
    }
}

#[test]
fn simulated_workspaces_are_the_measured_ones() {
    let rows = rows();
    assert!(rows.len() > 17_000);
    let mut inexact = 0;
    for row in &rows {
        for (simulated, measured) in simulated(row).into_iter().zip([row.forward, row.gradient]) {
            inexact += usize::from(simulated != measured);
            let far = simulated.abs_diff(measured) > MOST_APART;
            assert!(
                !far || may_differ(row),
                "simulated {simulated}, measured {measured}: {row:?}"
            );
        }
    }
    let share = inexact as f64 / (2 * rows.len()) as f64;
    assert!(
        share < MOST_INEXACT,
        "{inexact} of {} workspaces differ from the measured ones",
        2 * rows.len()
    );
}
