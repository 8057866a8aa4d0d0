//! Our own kernels over lists of tensors, one launch for a whole list.

use vramscope_benchmark::{Class, Kernel, Precision};

use super::Cuda;
use super::compile::{Arguments, Source};
use super::job::{Ready, Tensors};
use super::memory::Buffer;
use super::own::{adamw, made, vectors};
use crate::backends::Refusal;
use crate::kernels::reference::Numbers;

/// Vectors per block: `PART` in the source.
const PART: u64 = 4096;

/// Prepares a kernel on `tensors` tensors of `elements` elements each, which are contiguous in each input.
pub fn ready<'a>(
    cuda: &'a Cuda,
    kernel: &Kernel,
    precision: Precision,
    sets: &[Tensors],
) -> Result<Ready<'a>, Refusal> {
    let tensors = kernel.shape.tensors.unwrap_or(1);
    let elements = kernel.shape.elements.unwrap_or(1);
    let count = vectors(elements, precision)?;
    let parts = count.div_ceil(PART);
    let class = kernel.class;
    let addresses: Vec<Buffer> = sets
        .iter()
        .map(|set| {
            let begins = |buffer: &Buffer| {
                let first = buffer.address;
                (0..tensors).map(move |tensor| first + tensor * elements * precision.width())
            };
            cuda.card.with(&set.inputs.iter().flat_map(begins).collect::<Vec<_>>())
        })
        .collect::<Result<_, _>>()?;
    let name = match class {
        Class::Adamw => "foreach_adamw",
        Class::ForeachNorm => "foreach_squares",
        class => class.name(),
    };
    let function = cuda.function(Source::Lists, precision, name)?;
    let norm = match class {
        Class::ForeachNorm => Some((
            cuda.function(Source::Lists, precision, "foreach_roots")?,
            cuda.card.allocate(4 * tensors * parts)?,
        )),
        _ => None,
    };
    let extra = norm.iter().map(|(_, partial)| partial.bytes).collect();
    let name = match &norm {
        Some((roots, _)) => format!("{name}, {}", roots.name),
        None => name.to_owned(),
    };
    let launch = move |index: usize, set: &Tensors| {
        let arguments = Arguments::default().wide(addresses[index].address).wide(count);
        let arguments = match (class, &norm) {
            (Class::Adamw, _) => adamw(arguments),
            (Class::ForeachScale, _) => arguments.float(Numbers::FACTOR),
            (Class::ForeachLerp, _) => arguments.float(Numbers::WEIGHT),
            (Class::ForeachAddcdiv, _) => arguments.float(Numbers::VALUE),
            (_, Some((_, partial))) => arguments.wide(partial.address),
            _ => arguments,
        };
        function.launch_over([parts, tensors], 512, &arguments)?;
        let Some((roots, partial)) = &norm else { return Ok(()) };
        let arguments = Arguments::default()
            .wide(partial.address)
            .wide(set.outputs[0].address)
            .narrow(parts as u32);
        roots.launch(tensors, 256, &arguments)
    };
    Ok(Ready {
        extra,
        ..made(cuda, &name, Box::new(launch))
    })
}
