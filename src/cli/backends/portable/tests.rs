//! Compares every kernel of this backend with the reference on any available adapter; in CI that is Mesa's lavapipe.
//! Without an adapter the test reports that it compares nothing.

use vramscope_benchmark::{Class, Kernel, Layout, Pass, Precision, Shape};
use vramscope_engine::attention::Algorithm;

use crate::backends::{Backend, Refusal};
use crate::kernels::{reference, suite};

fn kernels(precision: Precision) -> Vec<Kernel> {
    let mut all = copies();
    for layout in [Layout::Nt, Layout::Nn, Layout::Tn] {
        all.push(suite::gemm(precision, [100, 70, 90], layout));
        all.push(suite::many(precision, 3, [100, 70, 90], layout));
    }
    all.extend(elementwise(precision));
    all.extend(of_rows(precision));
    let shape = Shape {
        batch: Some(2),
        length: Some(30),
        heads: Some(5),
        head_dim: Some(16),
        ..Shape::default()
    };
    all.push(Kernel {
        precision: Some(precision),
        shape,
        ..Kernel::of(Class::TransposeCopy)
    });
    all.extend(attentions(precision));
    all
}

fn copies() -> Vec<Kernel> {
    let copy = |class, pinned| Kernel {
        shape: Shape {
            bytes: Some(1 << 20),
            ..Shape::default()
        },
        pinned,
        ..Kernel::of(class)
    };
    vec![
        copy(Class::DeviceCopy, None),
        copy(Class::HostToDevice, Some(true)),
        copy(Class::DeviceToHost, Some(true)),
        copy(Class::HostToDevice, Some(false)),
        copy(Class::DeviceToHost, Some(false)),
    ]
}

fn backward(forward: Kernel) -> Kernel {
    Kernel {
        pass: Some(Pass::Backward),
        ..forward
    }
}

fn elementwise(precision: Precision) -> Vec<Kernel> {
    let of = |class| Kernel {
        precision: Some(precision),
        shape: Shape {
            elements: Some(5000),
            ..Shape::default()
        },
        ..Kernel::of(class)
    };
    let forward = [
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
    let both = [Class::Gelu, Class::GeluTanh, Class::Silu, Class::Tanh];
    let backward = both.map(|class| backward(of(class)));
    forward.map(of).into_iter().chain(backward).collect()
}

fn of_rows(precision: Precision) -> Vec<Kernel> {
    let of = |class| Kernel {
        precision: Some(precision),
        shape: Shape {
            rows: Some(70),
            columns: Some(520),
            ..Shape::default()
        },
        ..Kernel::of(class)
    };
    let forward = [
        Class::Softmax,
        Class::LogSoftmax,
        Class::LayerNorm,
        Class::RmsNorm,
        Class::CrossEntropy,
        Class::RotateHalf,
        Class::SumRows,
        Class::SumColumns,
    ];
    let backward = [Class::Softmax, Class::LogSoftmax].map(|class| backward(of(class)));
    forward.map(of).into_iter().chain(backward).collect()
}

fn attentions(precision: Precision) -> Vec<Kernel> {
    let cases = [
        (Algorithm::Standard, false, Pass::ForwardBackward),
        (Algorithm::Flash, false, Pass::Forward),
        (Algorithm::Flash, true, Pass::Forward),
        (Algorithm::Standard, false, Pass::Forward),
    ];
    let of = |heads, (algorithm, causal, pass)| suite::attention(algorithm, precision, heads, 200, causal, pass);
    let wide = cases.map(|case| of([2, 128], case));
    cases.map(|case| of([3, 64], case)).into_iter().chain(wide).collect()
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
