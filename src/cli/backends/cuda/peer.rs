//! Copies between two cards.

use std::rc::Rc;

use vramscope_benchmark::{Direction, Implementation, Kernel, Precision, Timer};

use super::Cuda;
use super::device::Card;
use super::job::{fill, numbers};
use super::memory::Buffer;
use crate::backends::{Prepared, Refusal};
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::Work;

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED` and `CUDA_ERROR_PEER_ACCESS_NOT_ENABLED`.
const ALREADY: [i32; 2] = [704, 705];

/// Source and destination of one copy.
struct Way {
    from: Rc<Card>,
    to: Rc<Card>,
    source: Buffer,
    target: Buffer,
}

struct PeerCopy<'a> {
    cuda: &'a Cuda,
    ways: Vec<Way>,
    direct: bool,
}

/// Allocates, fills and prepares a copy between the first two cards.
pub fn prepare<'a>(cuda: &'a Cuda, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let cards = cuda.cards(2)?;
    let work = Work::of(kernel);
    let direct = kernel.peer_access.unwrap_or(true);
    for [one, other] in [[0, 1], [1, 0]] {
        reach(&cards[one], &cards[other], direct)?;
    }
    cuda.card.enter();
    let pairs: &[[usize; 2]] = match kernel.direction {
        Some(Direction::Back) => &[[1, 0]],
        Some(Direction::Both) => &[[0, 1], [1, 0]],
        _ => &[[0, 1]],
    };
    let mut ways = Vec::new();
    for ((seed, input), [from, to]) in (1..).zip(&work.inputs).zip(pairs) {
        let bytes = input.bytes(Precision::Fp32);
        let way = Way {
            from: Rc::clone(&cards[*from]),
            to: Rc::clone(&cards[*to]),
            source: cards[*from].allocate(bytes)?,
            target: cards[*to].allocate(bytes)?,
        };
        cuda.card.enter();
        let filled = cuda.card.allocate(bytes)?;
        fill(cuda, input, seed, Precision::Fp32, &filled)?;
        cuda.card.wait()?;
        copy(&cuda.card, &filled, &way.from, &way.source)?;
        way.from.wait()?;
        ways.push(way);
    }
    cuda.card.enter();
    Ok(Box::new(PeerCopy { cuda, ways, direct }))
}

/// Enables or disables direct access of a card to another one's memory.
fn reach(card: &Card, other: &Card, direct: bool) -> Result<(), Refusal> {
    let mut can = 0;
    card.enter();
    // SAFETY: `can` is written; both cards and their contexts exist.
    let code = unsafe {
        card.ok((card.api.cuDeviceCanAccessPeer)(&mut can, card.ordinal, other.ordinal))?;
        match direct {
            true if can == 0 => {
                let reason = "the cards do not reach each other's memory: no NVLink, and PCIe copies between them are \
                              off (look at `nvidia-smi topo -p2p r`)";
                return Err(Refusal::Unsupported(reason.into()));
            }
            true => (card.api.cuCtxEnablePeerAccess)(other.context, 0),
            false if can == 0 => 0,
            false => (card.api.cuCtxDisablePeerAccess)(other.context),
        }
    };
    if ALREADY.contains(&code) {
        return Ok(());
    }
    card.ok(code)
}

/// Enqueues a copy on the stream of its source card.
pub fn copy(from: &Card, source: &Buffer, to: &Card, target: &Buffer) -> Result<(), Refusal> {
    from.enter();
    // SAFETY: both buffers are as long, each of the context that it is named with.
    from.ok(unsafe {
        (from.api.cuMemcpyPeerAsync)(
            target.address,
            to.context,
            source.address,
            from.context,
            source.bytes as usize,
            from.stream,
        )
    })
}

impl Reader for PeerCopy<'_> {
    fn read(&mut self, place: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let (TensorIndex::Input(i) | TensorIndex::Output(i)) = place;
        let bytes = self.ways[i].target.read(start * 4, count * 4)?;
        Ok(numbers(&bytes, Some(Precision::Fp32)))
    }
}

impl Prepared for PeerCopy<'_> {
    fn implementation(&self) -> Implementation {
        let way = if self.direct {
            "peer access"
        } else {
            "by way of the host"
        };
        self.cuda
            .implementation("driver", format!("cuMemcpyPeerAsync, {way}"), false)
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        None
    }

    fn timer(&self) -> Timer {
        Timer::Device
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        for way in &self.ways {
            way.target.set(0xff)?;
            way.to.wait()?;
        }
        self.time(1).map(drop)
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        let ways = &self.ways;
        let cards: Vec<&Card> = ways.iter().map(|way| way.from.as_ref()).collect();
        let timed = timed(&cards, || {
            (0..launches).try_for_each(|_| {
                ways.iter()
                    .try_for_each(|way| copy(&way.from, &way.source, &way.to, &way.target))
            })
        });
        self.cuda.card.enter();
        timed
    }
}

impl Drop for PeerCopy<'_> {
    fn drop(&mut self) {
        self.ways.clear();
        self.cuda.card.enter();
    }
}

/// Nanoseconds of the slowest card's stream for the work that `work` enqueues on all of them.
pub fn timed(cards: &[&Card], work: impl FnOnce() -> Result<(), Refusal>) -> Result<u64, Refusal> {
    let mut events = Vec::new();
    for card in cards {
        card.wait()?;
        events.push((card.event()?, card.event()?));
    }
    events.iter().try_for_each(|(begin, _)| begin.record())?;
    work()?;
    events.iter().try_for_each(|(_, end)| end.record())?;
    events
        .iter()
        .try_fold(0, |most, (begin, end)| Ok(end.since(begin)?.max(most)))
}
