//! Communication between GPUs: bytes sent, time of collectives, and the part that a step waits for.

use vramscope_engine::device::Device;
use vramscope_engine::units::Bandwidth;

/// A collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Collective {
    /// Sums the parts of all GPUs and leaves the sum on all.
    AllReduce,
    /// Gathers the shards of all GPUs onto all.
    AllGather,
    /// Sums, and leaves one shard of the sum on each GPU.
    ReduceScatter,
    /// Sends from one GPU to all.
    Broadcast,
    /// Sends from each GPU to the next.
    SendReceive,
}

impl Collective {
    /// All collectives.
    pub const ALL: [Self; 5] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::SendReceive,
    ];

    /// Name in PyTorch and in benchmark records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::SendReceive => "send_receive",
        }
    }

    /// The collective with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Bytes that each of `gpus` GPUs sends over a ring for a buffer of `bytes`.
    pub fn sent(self, bytes: f64, gpus: u64) -> f64 {
        let part = gpus.saturating_sub(1) as f64 / gpus.max(1) as f64;
        match self {
            Self::AllReduce => 2.0 * part * bytes,
            Self::AllGather | Self::ReduceScatter => part * bytes,
            Self::Broadcast | Self::SendReceive => bytes,
        }
    }
}

/// Interconnect between GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Bytes per second in one direction.
    pub bytes_per_s: f64,
    /// Fixed latency of every collective, in seconds.
    pub base: f64,
    /// Latency of each hop between GPUs, in seconds.
    pub hop: f64,
}

/// Share of NVLink's rate that NCCL counts on: 20.6 of 25 GB/s a link (`SM90_NVLINK_BW` in
/// `src/graph/topo.h`, NCCL 2.28).
const NVLINK_SHARE: f64 = 20.6 / 25.0;

/// Share of PCI Express's rate that NCCL counts on: 24 of 32 GB/s for generation 4 (`PCI_BW` in the same file counts 12
/// of 16 for generation 3).
const PCIE_SHARE: f64 = 0.75;

/// Latencies of NCCL's rings with protocol Simple: 8.4 µs at the start, and for each hop 3.4 µs over NVLink, 5.7 over
/// PCI Express, 14 over a network (`baseLat` and `hwLat` in `src/graph/tuning.cc`).
const BASE: f64 = 8.4e-6;
const HOP: f64 = 3.4e-6;
const PCIE_HOP: f64 = 5.7e-6;
const NETWORK_HOP: f64 = 14e-6;

impl Link {
    /// An NVLink interconnect; data sheets state the sum of both directions, in bytes per second.
    pub fn nvlink(both_directions: f64) -> Self {
        Self {
            bytes_per_s: both_directions / 2.0 * NVLINK_SHARE,
            base: BASE,
            hop: HOP,
        }
    }

    /// A PCI Express interconnect, with its rate in bytes per second in one direction.
    pub fn pcie(bytes_per_s: f64) -> Self {
        Self {
            bytes_per_s: bytes_per_s * PCIE_SHARE,
            base: BASE,
            hop: PCIE_HOP,
        }
    }

    /// A network between machines, with the share of each GPU in bytes per second in one direction.
    pub fn network(bytes_per_s: f64) -> Self {
        Self {
            bytes_per_s,
            base: BASE,
            hop: NETWORK_HOP,
        }
    }

    /// Interconnect of several cards in one machine according to their data sheet: NVLink or similar if they have it,
    /// else PCI Express.
    pub fn of(device: &Device) -> Option<Self> {
        let rate = |rate: Bandwidth| rate.as_gb_per_s() * 1e9;
        let link = device.link().map(|link| Self::nvlink(2.0 * rate(link)));
        link.or_else(|| device.pcie().map(|pcie| Self::pcie(rate(pcie))))
    }

    /// Seconds of a collective over a ring of `gpus`. `bytes` is the buffer that each GPU holds in the end (all-reduce,
    /// all-gather, broadcast) or at the start (reduce-scatter). An all-reduce moves 2·(n − 1)/n of it over each link,
    /// the others half of that (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).
    pub fn ring(&self, collective: Collective, bytes: f64, gpus: u64) -> f64 {
        if gpus < 2 {
            return 0.0;
        }
        let hops = (gpus - 1) as f64;
        let hops = match collective {
            Collective::AllReduce => 2.0 * hops,
            Collective::SendReceive => 1.0,
            _ => hops,
        };
        self.base + hops * self.hop + collective.sent(bytes, gpus) / self.bytes_per_s
    }

    /// Seconds of a collective with the fastest known algorithm.
    pub fn seconds(&self, collective: Collective, bytes: f64, gpus: u64) -> f64 {
        match collective {
            Collective::AllReduce => self.all_reduce(bytes, gpus),
            _ => self.ring(collective, bytes, gpus),
        }
    }

    /// Seconds of an all-reduce over two binary trees, each reducing and broadcasting half of the bytes (NCCL 2.4's
    /// double binary trees).
    pub fn tree(&self, bytes: f64, gpus: u64) -> f64 {
        if gpus < 2 {
            return 0.0;
        }
        let depth = f64::from(gpus.next_power_of_two().trailing_zeros());
        self.base + 2.0 * depth * self.hop + 2.0 * bytes / self.bytes_per_s
    }

    /// Seconds of an all-reduce over a ring or trees, whichever is faster.
    pub fn all_reduce(&self, bytes: f64, gpus: u64) -> f64 {
        self.ring(Collective::AllReduce, bytes, gpus)
            .min(self.tree(bytes, gpus))
    }
}

/// Parallel strategy of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Each GPU holds everything; gradients are all-reduced.
    Ddp,
    /// Optimizer states are sharded.
    Zero1,
    /// Optimizer states and gradients are sharded.
    Zero2,
    /// Weights are sharded too, gathered for forward and again for backward (FSDP with resharding).
    Zero3,
    /// Weights are sharded too, and stay gathered between forward and backward (FSDP without resharding).
    Zero3Kept,
}

/// Bytes of a model's trained weights and of their gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trained {
    /// Bytes of the weights.
    pub weights: f64,
    /// Bytes of the gradients as they are sent.
    pub gradients: f64,
}

impl Strategy {
    /// Collectives of one optimizer step, each with its bytes (ZeRO, arXiv 1910.02054, section 7).
    pub fn collectives(self, trained: Trained) -> Vec<(Collective, f64)> {
        use Collective::{AllGather, AllReduce, ReduceScatter};
        let Trained { weights, gradients } = trained;
        match self {
            Self::Ddp => vec![(AllReduce, gradients)],
            // PyTorch's ZeroRedundancyOptimizer keeps DDP's all-reduce, then broadcasts each shard.
            Self::Zero1 => vec![(AllReduce, gradients), (AllGather, weights)],
            Self::Zero2 => vec![(ReduceScatter, gradients), (AllGather, weights)],
            Self::Zero3 => vec![(AllGather, weights), (AllGather, weights), (ReduceScatter, gradients)],
            Self::Zero3Kept => vec![(AllGather, weights), (ReduceScatter, gradients)],
        }
    }

    /// Bytes that each GPU sends in one optimizer step, over a ring of `gpus`.
    pub fn bytes_sent(self, trained: Trained, gpus: u64) -> f64 {
        let collectives = self.collectives(trained).into_iter();
        collectives.map(|(kind, bytes)| kind.sent(bytes, gpus)).sum()
    }
}

/// Bytes that each GPU sends for one micro-batch of one block under tensor parallelism: two all-reduces of
/// activations forward and two backward (Megatron-LM, arXiv 1909.08053, section 3).
pub fn tensor_parallel_bytes(activations: f64, gpus: u64) -> f64 {
    4.0 * 2.0 * gpus.saturating_sub(1) as f64 / gpus.max(1) as f64 * activations
}

/// Share of a step in which pipeline stages are idle: p − 1 of m + p − 1 slots (GPipe, arXiv 1811.06965).
pub fn pipeline_bubble(stages: u64, micro_batches: u64) -> f64 {
    let idle = stages.saturating_sub(1) as f64;
    idle / (micro_batches as f64 + idle)
}

/// Elements that PowerSGD sends for an n × m gradient instead of n · m: two factors of the given rank (arXiv
/// 1905.13727, algorithm 1).
pub fn power_sgd_elements([n, m]: [u64; 2], rank: u64) -> u64 {
    (rank * (n + m)).min(n * m)
}

/// Bytes of DDP's gradient buckets, in the order in which they become ready: the first is closed at 1 MiB, later ones
/// at `cap` (`dist._DEFAULT_FIRST_BUCKET_BYTES`, `bucket_cap_mb` = 25).
pub fn buckets(gradients: &[u64], cap: u64) -> Vec<u64> {
    const FIRST: u64 = 1 << 20;
    let mut out = Vec::new();
    let mut open = 0;
    for bytes in gradients {
        open += bytes;
        let full = if out.is_empty() { FIRST.min(cap) } else { cap };
        if open >= full {
            out.push(open);
            open = 0;
        }
    }
    if open > 0 {
        out.push(open);
    }
    out
}

/// Time by which the collectives outlast the computation. Each starts when it is ready and the one before has ended.
/// `begins` holds pairs of ready time and duration, `computed` the end of the computation.
pub fn exposed(begins: &[(f64, f64)], computed: f64) -> f64 {
    let end = begins
        .iter()
        .fold(0.0_f64, |end, (ready, length)| end.max(*ready) + length);
    (end - computed).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A100: f64 = 600e9;

    #[test]
    fn a_ring_moves_what_the_formula_says() {
        let link = Link {
            bytes_per_s: 100e9,
            base: 0.0,
            hop: 0.0,
        };
        let time = link.ring(Collective::AllReduce, 8e9, 8);
        assert!((time - 2.0 * 7.0 / 8.0 * 8e9 / 100e9).abs() < 1e-12);
        assert_eq!(link.ring(Collective::AllReduce, 8e9, 1), 0.0);
        let half = link.ring(Collective::AllGather, 8e9, 8);
        assert!((2.0 * half - time).abs() < 1e-12);
    }

    #[test]
    fn small_messages_go_over_trees_large_ones_over_the_ring() {
        let link = Link::nvlink(A100);
        assert!(link.all_reduce(1e3, 64) < link.ring(Collective::AllReduce, 1e3, 64));
        assert_eq!(link.all_reduce(1e11, 64), link.ring(Collective::AllReduce, 1e11, 64));
    }

    #[test]
    fn sharding_weights_costs_half_as_much_again() {
        let trained = Trained {
            weights: 2e9,
            gradients: 2e9,
        };
        let ddp = Strategy::Ddp.bytes_sent(trained, 8);
        assert_eq!(Strategy::Zero2.bytes_sent(trained, 8), ddp);
        assert_eq!(Strategy::Zero3.bytes_sent(trained, 8), 1.5 * ddp);
    }

    #[test]
    fn buckets_are_closed_when_full() {
        let mib = 1 << 20;
        assert_eq!(buckets(&[mib, 20 * mib, 6 * mib, mib], 25 * mib), [mib, 26 * mib, mib]);
        assert!(buckets(&[], 25 * mib).is_empty());
    }

    #[test]
    fn only_what_comes_after_the_computation_is_waited_for() {
        assert_eq!(exposed(&[(1.0, 2.0), (2.0, 2.0)], 10.0), 0.0);
        assert_eq!(exposed(&[(1.0, 2.0), (9.0, 4.0)], 10.0), 3.0);
    }

    /// Exercise 11.4: 13B parameters in fp16 on 8 A100, 600 GB/s each, a global batch of 256 in
    /// micro-batches of 4. The course gives 500 ms of communication and about 50 ms once accumulated over
    /// 8 micro-batches and overlapped. A ring over 26 GB of gradients takes 184 ms at NCCL's rate; one
    /// optimizer step pays it once, whatever the number of micro-batches, so that each of the 8
    /// micro-batches pays 23 ms, before any overlap.
    #[test]
    fn the_course_s_communication_exercise() {
        let link = Link::nvlink(A100);
        let gradients = 13e9 * 2.0;
        let once = link.all_reduce(gradients, 8);
        assert!((0.15..0.20).contains(&once), "{once}");
        let micro_batches = 256 / (8 * 4);
        let each = once / f64::from(micro_batches);
        assert!(each < 0.050, "{each}");
        // Factors of rank 4 of a 5120 × 5120 matrix are 640 times smaller.
        assert_eq!(5120 * 5120 / power_sgd_elements([5120, 5120], 4), 640);
    }
}
