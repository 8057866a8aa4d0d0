//! Places a step's operations under the roofline: the lower of the card's arithmetic rate, and its bandwidth times the
//! operations per byte (Williams, Waterman and Patterson, "Roofline", 2009).

use serde::Serialize;

use super::cost::Costs;
use super::step::StepTime;
use vramscope_engine::dtype::DType;
use vramscope_engine::order::sort_by;
use vramscope_engine::tape::work::{Class, Launch, Layout};

/// Peak rates that kernels reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Roof {
    /// Rate of a large matrix product in the step's dtype, in TFLOP/s.
    pub tflops: f64,
    /// Rate of a large copy, counting bytes read and written, in GB/s.
    pub gb_per_s: f64,
}

/// Operations of one kind in one part of the model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Kind of kernel.
    pub name: &'static str,
    /// Part of the model.
    pub component: &'static str,
    /// GPU time in milliseconds.
    pub ms: f64,
    /// Floating-point operations of products per byte.
    pub flops_per_byte: f64,
    /// Achieved TFLOP/s.
    pub tflops: f64,
    /// Achieved GB/s.
    pub gb_per_s: f64,
    /// Achieved share of the rate that the roof allows at this number of operations per byte.
    pub share_of_roof: f64,
}

impl Roof {
    /// Rates of an 8192³ matrix product and of a copy of 1 GiB.
    pub fn of(costs: &Costs<'_>, dtype: DType) -> Self {
        const N: u64 = 8192;
        const COPY: u64 = 1 << 30;
        let width = dtype.width();
        let launch = |class, read, written, extents| Launch {
            name: "roof",
            class,
            dtype,
            gradient: false,
            scope: 0,
            read,
            written,
            extents,
            shared: 1,
        };
        let matrix = N * N * width;
        let product = launch(Class::Matmul(Layout::Tn), 2 * matrix, matrix, [N, N, N, 1]);
        let copy = launch(Class::Pointwise, COPY, COPY, [0; 4]);
        Self {
            tflops: 2.0 * (N * N * N) as f64 / costs.kernel(&product) / 1e12,
            gb_per_s: 2.0 * COPY as f64 / costs.kernel(&copy) / 1e9,
        }
    }
}

/// One point for each kind of kernel in each part of the model, longest first.
pub fn points(time: &StepTime, roof: Roof) -> Vec<Point> {
    let mut out: Vec<Point> = time
        .operations
        .iter()
        .filter(|(_, share)| share.seconds > 0.0)
        .map(|((name, component), share)| {
            let ideal = (share.flops / (roof.tflops * 1e12)).max(share.bytes / (roof.gb_per_s * 1e9));
            Point {
                name,
                component: component.label(),
                ms: share.seconds * 1e3,
                flops_per_byte: share.flops / share.bytes.max(1.0),
                tflops: share.flops / share.seconds / 1e12,
                gb_per_s: share.bytes / share.seconds / 1e9,
                share_of_roof: ideal / share.seconds,
            }
        })
        .collect();
    sort_by(&mut out, |a, b| b.ms.total_cmp(&a.ms));
    out
}
