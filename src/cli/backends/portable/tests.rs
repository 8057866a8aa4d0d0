//! Every kernel of this backend against the reference, on whatever adapter there is; in CI that is Mesa's
//! lavapipe. Without an adapter there is nothing to hold, and the test says so.

use vramscope_engine::attention::Algorithm;
use vramscope_engine::record::{Class, Kernel, Layout, Pass, Precision, Shape};

use crate::backends::{Backend, Refusal};
use crate::kernels::label::label;
use crate::kernels::{reference, suite};

fn kernels(precision: Precision) -> Vec<Kernel> {
    let with = |class, shape| Kernel {
        precision: Some(precision),
        shape,
        ..Kernel::of(class)
    };
    let flat = |class| {
        with(
            class,
            Shape {
                elements: Some(5000),
                ..Shape::default()
            },
        )
    };
    let rowed = |class| {
        with(
            class,
            Shape {
                rows: Some(70),
                columns: Some(520),
                ..Shape::default()
            },
        )
    };
    let mut all = vec![
        Kernel {
            shape: Shape {
                bytes: Some(1 << 20),
                ..Shape::default()
            },
            ..Kernel::of(Class::DeviceCopy)
        },
        suite::gemm(precision, [100, 70, 90], Layout::Nt),
        suite::gemm(precision, [100, 70, 90], Layout::Nn),
    ];
    all.extend([Class::Gelu, Class::SiluMul, Class::Adamw].map(flat));
    all.extend([Class::Softmax, Class::LayerNorm, Class::RmsNorm, Class::CrossEntropy].map(rowed));
    for (algorithm, causal) in [
        (Algorithm::Flash, false),
        (Algorithm::Flash, true),
        (Algorithm::Standard, false),
    ] {
        for heads in [[3, 64], [2, 128]] {
            all.push(suite::attention(
                algorithm,
                precision,
                heads,
                200,
                causal,
                Pass::Forward,
            ));
        }
    }
    all
}

#[test]
fn every_kernel_is_right() {
    let gpu = match super::find() {
        Ok(gpu) => gpu,
        Err(why) => {
            println!("nothing is compared: {why}; on Debian: apt-get install mesa-vulkan-drivers");
            return;
        }
    };
    println!("compared on {} ({})", gpu.device().name, gpu.interface());
    let mut compared = 0;
    for precision in [Precision::Fp32, Precision::Fp16] {
        for kernel in kernels(precision) {
            let name = label(&kernel);
            let mut prepared = match gpu.prepare(&kernel) {
                Ok(prepared) => prepared,
                Err(Refusal::Unsupported(_)) if precision == Precision::Fp16 => continue,
                Err(refusal) => panic!("{name}: {}", String::from(refusal)),
            };
            prepared
                .run_once()
                .unwrap_or_else(|e| panic!("{name}: {}", String::from(e)));
            let check = reference::check(&kernel, prepared.as_mut()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let check = check.unwrap_or_else(|| panic!("{name} is not compared"));
            assert!(check.passed, "{name}: {check:?}");
            compared += 1;
        }
    }
    assert!(compared >= kernels(Precision::Fp32).len());
}
