//! The kernels that the portable backend can run.

use vramscope_benchmark::{Class, Kernel, Layout, Pass, Precision};
use vramscope_engine::attention::Algorithm;

use super::attention::{HEADS, attention};
use super::copy;
use super::elements::{backward, flat, rowed};
use super::products::{gemm, many};

use Precision::{Fp16, Fp32};

/// All kernels of the portable backend: fp32 and fp16, at sizes that fit on small cards.
pub fn kernels(quick: bool) -> Vec<Kernel> {
    let mut all: Vec<Kernel> = [20, 24, 26, 27]
        .map(|log| copy(Class::DeviceCopy, 1 << log, None))
        .into();
    all.push(Kernel::of(Class::Launch));
    let last = |sizes: &[u64]| {
        if quick {
            sizes[sizes.len() - 1..].to_vec()
        } else {
            sizes.to_vec()
        }
    };
    for log in last(&[16, 20, 24]) {
        for class in [Class::HostToDevice, Class::DeviceToHost] {
            all.extend([true, false].map(|pinned| copy(class, 1 << log, Some(pinned))));
        }
    }
    for precision in [Fp32, Fp16] {
        for n in last(&[256, 512, 1024, 2048]) {
            all.extend([Layout::Nt, Layout::Nn, Layout::Tn].map(|layout| gemm(precision, [n; 3], layout)));
        }
        if !quick {
            let products = [Layout::Nt, Layout::Nn, Layout::Tn];
            all.extend(products.map(|layout| many(precision, 16, [256, 256, 64], layout)));
        }
        for log in last(&[16, 20, 24]) {
            all.extend(passes(precision, 1 << log, quick));
        }
        all.push(rowed(Class::CrossEntropy, precision, 512, 50_264));
        for length in last(&[128, 256, 512, 1024, 2048]) {
            for heads in HEADS {
                for (algorithm, causal, pass) in [
                    (Algorithm::Flash, false, Pass::Forward),
                    (Algorithm::Flash, true, Pass::Forward),
                    (Algorithm::Standard, false, Pass::Forward),
                    (Algorithm::Standard, false, Pass::ForwardBackward),
                ] {
                    all.push(attention(algorithm, precision, heads, length, causal, pass));
                }
            }
        }
    }
    all
}

/// Kernels that read `elements` elements once or a few times.
fn passes(precision: Precision, elements: u64, quick: bool) -> Vec<Kernel> {
    let flat = |class| flat(class, precision, elements);
    let rowed = |class| rowed(class, precision, elements / 1024, 1024);
    let mut all = [Class::Gelu, Class::SiluMul, Class::Adamw].map(flat).to_vec();
    all.extend([Class::Softmax, Class::LayerNorm, Class::RmsNorm].map(rowed));
    if quick {
        return all;
    }
    let others = [
        Class::Scale,
        Class::Add,
        Class::Mul,
        Class::Fill,
        Class::GeluTanh,
        Class::Silu,
        Class::Tanh,
        Class::Sigmoid,
    ];
    all.extend(others.map(flat));
    all.extend([Class::Gelu, Class::GeluTanh, Class::Silu, Class::Tanh].map(|class| backward(flat(class))));
    let of_rows = [Class::LogSoftmax, Class::RotateHalf, Class::SumRows, Class::SumColumns];
    all.extend(of_rows.map(rowed));
    all.extend([Class::Softmax, Class::LogSoftmax].map(|class| backward(rowed(class))));
    all
}
