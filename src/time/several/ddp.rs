//! Simulates `DistributedDataParallel`: buckets of gradients, all-reduced while backward continues.

use super::super::communication::Collective;
use super::super::timeline::Phase;
use super::replayer::Replayer;
use vramscope_engine::dtype::DType;
use vramscope_engine::setup::{Parallel, Strategy};
use vramscope_engine::simulate::Recording;
use vramscope_engine::tape::log::StorageId;
use vramscope_engine::tape::work::{HostOp, WorkItem};

/// Bytes at which the first bucket is closed, so that communication starts early (`dist._DEFAULT_FIRST_BUCKET_BYTES`).
const FIRST: u64 = 1 << 20;

/// Compression that a communication hook applies to a bucket before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// No compression.
    None,
    /// Cast to 2-byte numbers (`fp16_compress_hook`).
    Half,
    /// Two factors of this rank for each matrix (`powerSGD_hook`, arXiv 1905.13727), after its warm-up steps.
    PowerSgd(u64),
}

/// A gradient in a bucket.
#[derive(Clone, Copy)]
struct Gradient {
    dtype: DType,
    bytes: u64,
    /// Extents as a matrix: the first dimension, and the product of the others.
    matrix: [u64; 2],
}

impl Gradient {
    /// Bytes of the two factors; `None` if the gradient is not a matrix or factors are no smaller.
    fn factors(&self, rank: u64) -> Option<[u64; 2]> {
        let [n, m] = self.matrix;
        let [p, q] = [rank * n, rank * m];
        (p + q < n * m).then(|| [p * self.dtype.width(), q * self.dtype.width()])
    }
}

/// Simulates forward and backward. Each gradient is copied into its bucket and divided by the number of GPUs; full
/// buckets are all-reduced. After backward, gradients that are not views of the buckets are copied back
/// (`finalize_backward`).
pub(super) fn passes(
    replayer: &mut Replayer<'_, '_>,
    recording: &Recording,
    parallel: &Parallel,
    compression: Compression,
) {
    replayer.begin(Phase::Forward);
    replayer.host("ddp forward", 1);
    recording.work.forward().iter().for_each(|item| replayer.item(item));
    replayer.begin(Phase::Backward);
    let mut buckets = Buckets {
        cap: parallel.bucket << 20,
        compression,
        open: Vec::new(),
        closed: Vec::new(),
    };
    for item in recording.work.backward() {
        replayer.item(item);
        if let WorkItem::HostOp(HostOp::Accumulate(Some(id))) = item {
            buckets.ready(replayer, gradient(recording, *id));
        }
    }
    while let Some(bucket) = buckets.open.pop() {
        buckets.close(replayer, bucket);
    }
    for (done, gradients) in buckets.closed {
        replayer.join(done);
        if compression == Compression::Half {
            let (wide, half) = halves(&gradients);
            replayer.copy("gradients out of 2 bytes", DType::F32, [half, wide]);
        }
        if parallel.strategy == Strategy::Ddp {
            for Gradient { dtype, bytes, .. } in gradients {
                replayer.host("ddp copy", 1);
                replayer.copy("gradients from a bucket", dtype, [bytes, bytes]);
            }
        }
    }
}

fn gradient(recording: &Recording, id: StorageId) -> Gradient {
    let allocation = &recording.log.allocations[id as usize];
    let elements = allocation.shape.numel();
    let first = if allocation.shape.len() < 2 {
        elements
    } else {
        allocation.shape[0]
    };
    Gradient {
        dtype: allocation.dtype,
        bytes: elements * allocation.dtype.width(),
        matrix: [first, elements / first.max(1)],
    }
}

/// Bytes of the gradients that are wider than 2 bytes, and their bytes after the cast.
fn halves(bucket: &[Gradient]) -> (u64, u64) {
    let wide = bucket.iter().filter(|g| g.dtype.width() > 2);
    let (bytes, elements) = wide.fold((0, 0), |(bytes, n), g| (bytes + g.bytes, n + g.bytes / g.dtype.width()));
    (bytes, 2 * elements)
}

/// Buckets in the order in which gradients become ready, as DDP assigns them after its first step, one series per
/// dtype.
struct Buckets {
    cap: u64,
    compression: Compression,
    open: Vec<Vec<Gradient>>,
    /// Time at which each bucket is all-reduced, and its gradients.
    closed: Vec<(f64, Vec<Gradient>)>,
}

impl Buckets {
    fn ready(&mut self, replayer: &mut Replayer<'_, '_>, gradient: Gradient) {
        replayer.host("ddp parameter", 1);
        replayer.copy("gradient into a bucket", gradient.dtype, [gradient.bytes; 2]);
        let same = |bucket: &Vec<Gradient>| bucket.first().is_some_and(|g| g.dtype == gradient.dtype);
        let at = self.open.iter().position(same).unwrap_or_else(|| {
            self.open.push(Vec::new());
            self.open.len() - 1
        });
        self.open[at].push(gradient);
        let cap = if self.closed.is_empty() {
            FIRST.min(self.cap)
        } else {
            self.cap
        };
        if bytes(&self.open[at]) >= cap {
            let bucket = self.open.remove(at);
            self.close(replayer, bucket);
        }
    }

    fn close(&mut self, replayer: &mut Replayer<'_, '_>, bucket: Vec<Gradient>) {
        let done = match self.compression {
            Compression::None => sum(replayer, bytes(&bucket)),
            Compression::Half => {
                let (wide, half) = halves(&bucket);
                replayer.copy("gradients into 2 bytes", DType::F32, [wide, half]);
                sum(replayer, bytes(&bucket) - wide + half)
            }
            Compression::PowerSgd(rank) => power_sgd(replayer, &bucket, rank),
        };
        self.closed.push((done, bucket));
    }
}

/// All-reduces `bytes` and returns the time when it is done.
fn sum(replayer: &mut Replayer<'_, '_>, bytes: u64) -> f64 {
    let ready = replayer.computed();
    let done = replayer.collective(Collective::AllReduce, bytes as f64, ready);
    replayer.host("all_reduce call", 1);
    done
}

/// Simulates PowerSGD: adds the error of the last step, all-reduces the left factor together with the non-matrices,
/// then the right factor; their product is the gradient, and its error is kept. The products are narrow, so their time
/// depends on the gradient's bytes.
fn power_sgd(replayer: &mut Replayer<'_, '_>, bucket: &[Gradient], rank: u64) -> f64 {
    let (mut whole, mut left, mut right, mut plain) = (0, 0, 0, 0);
    for gradient in bucket {
        match gradient.factors(rank) {
            Some([p, q]) => (whole, left, right) = (whole + gradient.bytes, left + p, right + q),
            None => plain += gradient.bytes,
        }
    }
    let dtype = bucket.first().map_or(DType::F32, |gradient| gradient.dtype);
    replayer.copy("error of the last step", dtype, [2 * whole, whole]);
    replayer.copy("left factors", dtype, [whole, left]);
    let summed = sum(replayer, plain + left);
    replayer.join(summed);
    replayer.copy("right factors", dtype, [whole, right]);
    let summed = sum(replayer, right);
    replayer.join(summed);
    replayer.copy("gradients of factors", dtype, [left + right, whole]);
    replayer.copy("error of this step", dtype, [2 * whole, whole]);
    replayer.computed()
}

fn bytes(bucket: &[Gradient]) -> u64 {
    bucket.iter().map(|gradient| gradient.bytes).sum()
}
