//! Compares every kernel of this backend with the reference on any available adapter; in CI that is Mesa's lavapipe.
//! Without an adapter the test reports that it compares nothing.

use vramscope_benchmark::{Class, Kernel, Layout, Pass, Precision, Shape};
use vramscope_engine::attention::Algorithm;

use crate::backends::{Backend, Refusal};
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
    let mut all: Vec<Kernel> = [None, Some(true), Some(false)]
        .into_iter()
        .flat_map(|pinned| {
            let classes: &[Class] = match pinned {
                None => &[Class::DeviceCopy],
                Some(_) => &[Class::HostToDevice, Class::DeviceToHost],
            };
            classes.iter().map(move |class| Kernel {
                shape: Shape {
                    bytes: Some(1 << 20),
                    ..Shape::default()
                },
                pinned,
                ..Kernel::of(*class)
            })
        })
        .collect();
    for layout in [Layout::Nt, Layout::Nn, Layout::Tn] {
        all.push(suite::gemm(precision, [100, 70, 90], layout));
        all.push(suite::many(precision, 3, [100, 70, 90], layout));
    }
    let backward = |forward: Kernel| Kernel {
        pass: Some(Pass::Backward),
        ..forward
    };
    let elements = [
        Class::Scale,
        Class::Add,
        Class::Mul,
        Class::Fill,
        Class::Gelu,
        Class::GeluTanh,
        Class::Silu,
        Class::SiluMul,
        Class::Tanh,
        Class::Sigmoid,
        Class::Adamw,
    ];
    all.extend(elements.map(flat));
    all.extend([Class::Gelu, Class::GeluTanh, Class::Silu, Class::Tanh].map(|class| backward(flat(class))));
    let rows = [
        Class::Softmax,
        Class::LogSoftmax,
        Class::LayerNorm,
        Class::RmsNorm,
        Class::CrossEntropy,
        Class::RotateHalf,
        Class::SumRows,
        Class::SumColumns,
    ];
    all.extend(rows.map(rowed));
    all.extend([Class::Softmax, Class::LogSoftmax].map(|class| backward(rowed(class))));
    let shape = Shape {
        batch: Some(2),
        length: Some(30),
        heads: Some(5),
        head_dim: Some(16),
        ..Shape::default()
    };
    all.push(with(Class::TransposeCopy, shape));
    for heads in [[3, 64], [2, 128]] {
        let pass = Pass::ForwardBackward;
        all.push(suite::attention(
            Algorithm::Standard,
            precision,
            heads,
            200,
            false,
            pass,
        ));
    }
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
            let name = kernel.label();
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

/// A run measures the same kernels as compared above, at other sizes.
#[test]
fn every_class_of_a_run_is_compared() {
    let compared = kernels(Precision::Fp32);
    for kernel in suite::portable(false) {
        let alike = |other: &Kernel| {
            let parts = |k: &Kernel| (k.class, k.pass, k.algorithm, k.causal, k.layout, k.pinned);
            parts(other) == parts(&kernel) && other.shape.batch.is_some() == kernel.shape.batch.is_some()
        };
        let known = kernel.class == Class::Launch || compared.iter().any(alike);
        assert!(known, "{}", kernel.label());
    }
}
