//! Collectives between several cards of one process, by NCCL.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;
use std::rc::Rc;

use vramscope_benchmark::{Class, Implementation, Kernel, Precision, Timer};

use super::Cuda;
use super::api::{Handle, Nccl};
use super::device::Card;
use super::job::{fill, numbers};
use super::memory::Buffer;
use super::peer::{copy, timed};
use crate::backends::{Prepared, Refusal};
use crate::kernels::reference::{Reader, TensorIndex};
use crate::kernels::work::{Element, Work};

/// Function that returns the text for a status.
type Words = unsafe extern "C" fn(c_int) -> *const c_char;

/// NCCL, and the communicators created so far.
pub struct Library {
    api: Nccl,
    words: Option<Words>,
    groups: RefCell<BTreeMap<usize, Vec<Handle>>>,
}

/// `ncclSum`.
const SUM: c_int = 0;

impl Library {
    /// Looks up NCCL's functions.
    ///
    /// # Errors
    /// If a function is missing; the message names it.
    pub fn start(library: libloading::Library) -> Result<Rc<Self>, String> {
        // SAFETY: the type is that of the function's documentation.
        let words = unsafe { library.get::<Words>(b"ncclGetErrorString\0") };
        let words = words.map(|symbol| *symbol).ok();
        Ok(Rc::new(Self {
            api: Nccl::load(library)?,
            words,
            groups: RefCell::default(),
        }))
    }

    /// Version of NCCL: the number 22809 is 2.28.9.
    pub fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: it is written.
        unsafe { (self.api.ncclGetVersion)(&mut version) };
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    fn ok(&self, code: c_int) -> Result<(), Refusal> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NCCL gives a text of its own that lives on.
        let words = self.words.map(|words| unsafe { CStr::from_ptr(words(code)) });
        let words = words.map_or_else(|| format!("status {code}"), |text| text.to_string_lossy().into_owned());
        Err(Refusal::Failed(format!(
            "NCCL: {words}; NCCL_DEBUG=WARN in the environment makes it say more"
        )))
    }

    /// Communicators of the first `cards` cards, created at the first call.
    fn group(&self, cards: usize) -> Result<Vec<Handle>, Refusal> {
        if let Some(group) = self.groups.borrow().get(&cards) {
            return Ok(group.clone());
        }
        let mut group = vec![null_mut(); cards];
        let places: Vec<c_int> = (0..cards as c_int).collect();
        // SAFETY: there is room for as many communicators as there are cards.
        self.ok(unsafe { (self.api.ncclCommInitAll)(group.as_mut_ptr(), cards as c_int, places.as_ptr()) })?;
        self.groups.borrow_mut().insert(cards, group.clone());
        Ok(group)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        for communicator in self.groups.borrow().values().flatten() {
            // SAFETY: no collective is under way: each is waited for.
            unsafe { (self.api.ncclCommDestroy)(*communicator) };
        }
    }
}

/// One card's part in a collective.
struct Member {
    card: Rc<Card>,
    communicator: Handle,
    /// Input buffer; `None` on a card that only receives.
    given: Option<Buffer>,
    got: Buffer,
}

struct Collective<'a> {
    cuda: &'a Cuda,
    library: Rc<Library>,
    class: Class,
    precision: Precision,
    members: Vec<Member>,
}

/// Allocates, fills and prepares a collective.
pub fn prepare<'a>(cuda: &'a Cuda, kernel: &Kernel) -> Result<Box<dyn Prepared + 'a>, Refusal> {
    let cards = cuda.cards(kernel.shape.devices.unwrap_or(2))?;
    let library = cuda.nccl.as_ref().map_err(|why| super::missing("NCCL", why))?;
    let precision = kernel.precision.unwrap_or(Precision::Fp32);
    let work = Work::of(kernel);
    let group = library.group(cards.len());
    cuda.card.enter();
    let mut members = Vec::new();
    for (i, (card, communicator)) in cards.into_iter().zip(group?).enumerate() {
        let given = match work.inputs.get(i) {
            Some(input) => {
                let bytes = input.bytes(precision);
                let given = card.allocate(bytes)?;
                cuda.card.enter();
                // Inputs are drawn on the first card, where the kernels are loaded.
                let filled = cuda.card.allocate(bytes)?;
                fill(cuda, input, i as u32 + 1, precision, &filled)?;
                cuda.card.wait()?;
                copy(&cuda.card, &filled, &card, &given)?;
                cuda.card.wait()?;
                Some(given)
            }
            None => None,
        };
        let got = card.allocate(work.outputs[i].bytes(precision))?;
        members.push(Member {
            card,
            communicator,
            given,
            got,
        });
    }
    cuda.card.enter();
    Ok(Box::new(Collective {
        cuda,
        library: Rc::clone(library),
        class: kernel.class,
        precision,
        members,
    }))
}

impl Collective<'_> {
    /// Enqueues one collective on the streams of all cards.
    fn launch(&self) -> Result<(), Refusal> {
        let (library, api) = (&self.library, &self.library.api);
        // SAFETY: no arguments.
        library.ok(unsafe { (api.ncclGroupStart)() })?;
        let put = (0..self.members.len()).try_for_each(|i| self.put(i));
        // SAFETY: the group was begun; it is closed whatever was put into it.
        let closed = library.ok(unsafe { (api.ncclGroupEnd)() });
        put.and(closed)
    }

    /// Enqueues one card's part.
    fn put(&self, i: usize) -> Result<(), Refusal> {
        // Values of ncclDataType_t.
        let kind: c_int = match self.precision {
            Precision::Fp16 => 6,
            Precision::Fp32 | Precision::Tf32 => 7,
            Precision::Bf16 => 9,
        };
        let api = &self.library.api;
        let member = &self.members[i];
        let (group, stream) = (member.communicator, member.card.stream);
        let from = member.given.as_ref().map_or(0, |given| given.address);
        let to = member.got.address;
        let count = |buffer: &Buffer| (buffer.bytes / self.precision.width()) as usize;
        let got = count(&member.got);
        let cards = self.members.len();
        // SAFETY: buffers are as long as the counts say, on the communicator's card, as is the stream.
        self.library.ok(unsafe {
            match self.class {
                Class::AllReduce => (api.ncclAllReduce)(from, to, got, kind, SUM, group, stream),
                Class::AllGather => (api.ncclAllGather)(from, to, got / cards, kind, group, stream),
                Class::ReduceScatter => (api.ncclReduceScatter)(from, to, got, kind, SUM, group, stream),
                Class::Broadcast => (api.ncclBroadcast)(from, to, got, kind, 0, group, stream),
                _ => {
                    let [next, last] = [(i + 1) % cards, (i + cards - 1) % cards].map(|n| n as c_int);
                    match (api.ncclSend)(from, got, kind, next, group, stream) {
                        0 => (api.ncclRecv)(to, got, kind, last, group, stream),
                        code => code,
                    }
                }
            }
        })
    }
}

impl Reader for Collective<'_> {
    fn read(&mut self, place: TensorIndex, start: u64, count: u64) -> Result<Vec<f32>, String> {
        let (TensorIndex::Input(i) | TensorIndex::Output(i)) = place;
        let width = self.precision.width();
        let bytes = self.members[i].got.read(start * width, count * width)?;
        Ok(numbers(&bytes, Element::Own.precision(self.precision)))
    }
}

impl Prepared for Collective<'_> {
    fn implementation(&self) -> Implementation {
        let sums = matches!(self.class, Class::AllReduce | Class::ReduceScatter);
        let kernel = match self.class {
            Class::AllReduce => "ncclAllReduce",
            Class::AllGather => "ncclAllGather",
            Class::ReduceScatter => "ncclReduceScatter",
            Class::Broadcast => "ncclBroadcast",
            _ => "ncclSend, ncclRecv",
        };
        let mut ran = self.cuda.implementation("NCCL", kernel.into(), false);
        // NCCL accumulates in the dtype that it transfers.
        ran.accumulator = sums.then(|| self.precision.name().into());
        ran
    }

    fn peak_extra_bytes(&self) -> Option<u64> {
        None
    }

    fn timer(&self) -> Timer {
        Timer::Device
    }

    fn run_once(&mut self) -> Result<(), Refusal> {
        for member in &self.members {
            member.got.set(0xff)?;
        }
        self.time(1).map(drop)
    }

    fn time(&mut self, launches: u32) -> Result<u64, Refusal> {
        let cards: Vec<&Card> = self.members.iter().map(|member| member.card.as_ref()).collect();
        let timed = timed(&cards, || (0..launches).try_for_each(|_| self.launch()));
        self.cuda.card.enter();
        timed
    }
}

impl Drop for Collective<'_> {
    fn drop(&mut self) {
        self.members.clear();
        self.cuda.card.enter();
    }
}
