//! Parses out-of-memory messages.
//!
//! Sources: `c10/cuda/CUDACachingAllocator.cpp` of PyTorch 1.0 (`cached`), 1.4 (`reserved in total by PyTorch`),
//! 1.8 (`allowed`), 2.1 (`this process has`), 2.2 (`private pools`); `c10/xpu/XPUCachingAllocator.cpp`;
//! `c10/cuda/CUDAMallocAsyncAllocator.cpp` (a line for each figure); `aten/src/ATen/mps/MPSAllocator.mm`; `c10/core/impl/alloc_cpu.cpp`; ROCm's builds write HIP for CUDA.

use super::site;
use super::{Asker, Backend, OomMessage, Process};
use crate::amount::{Amount, Found, amounts};
use crate::evidence::{Evidence, Piece};
use crate::paste::is_quoted;
use crate::text::{line_of, one_line, window};

/// Text that begins a message, and the component that failed. At each position the first match wins.
const ANCHORS: [(&str, Asker); 20] = [
    ("CUDA out of memory", Asker::Allocator(Backend::Cuda)),
    ("HIP out of memory", Asker::Allocator(Backend::Hip)),
    ("XPU out of memory", Asker::Allocator(Backend::Xpu)),
    ("MPS backend out of memory", Asker::Allocator(Backend::Mps)),
    (
        "would exceed allowed memory. (out of memory)",
        Asker::Allocator(Backend::Cuda),
    ),
    ("CUBLAS_STATUS_ALLOC_FAILED", Asker::Cublas),
    ("HIPBLAS_STATUS_ALLOC_FAILED", Asker::Cublas),
    ("CUDNN_STATUS_ALLOC_FAILED", Asker::Cudnn),
    ("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", Asker::Cudnn),
    ("Cuda failure 2 'out of memory'", Asker::Nccl),
    ("Cuda failure 'out of memory'", Asker::Nccl),
    ("CUDA error: out of memory", Asker::Driver(Backend::Cuda)),
    ("CUDA driver error: out of memory", Asker::Driver(Backend::Cuda)),
    ("cuda runtime error (2) : out of memory", Asker::Driver(Backend::Cuda)),
    ("cudaErrorMemoryAllocation", Asker::Driver(Backend::Cuda)),
    ("HIP error: out of memory", Asker::Driver(Backend::Hip)),
    ("CUDA_ERROR_OUT_OF_MEMORY", Asker::Driver(Backend::Cuda)),
    ("error=2 : out of memory", Asker::Driver(Backend::Cuda)),
    ("DefaultCPUAllocator: can't allocate memory", Asker::Host),
    ("DefaultCPUAllocator: not enough memory", Asker::Host),
];

/// Longest message in bytes, including its advice and links.
const LONGEST: usize = 2000;
/// Largest number of distinct messages.
const MOST: usize = 64;

/// Longest text in bytes that is searched again with its lines joined, if it contains no message.
const LONGEST_JOINED: usize = 1 << 20;

/// Finds every distinct message in a text. Terminals may have broken lines anywhere.
pub fn find(text: &str) -> Vec<Piece> {
    let pieces = find_whole(text);
    if pieces.is_empty() && text.len() <= LONGEST_JOINED {
        return find_whole(&one_line(text));
    }
    pieces
}

fn find_whole(text: &str) -> Vec<Piece> {
    let mut starts: Vec<(usize, Asker)> = ANCHORS
        .iter()
        .flat_map(|&(anchor, asker)| text.match_indices(anchor).map(move |(at, _)| (at, asker)))
        .collect();
    starts.sort_unstable_by_key(|&(at, _)| at);
    let mut pieces: Vec<Piece> = Vec::new();
    for (i, &(at, asker)) in starts.iter().enumerate() {
        let next = starts.get(i + 1).map_or(text.len(), |&(next, _)| next);
        let line_start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        if is_quoted(&text[line_start..line_end], at - line_start) {
            continue;
        }
        let raw = window(text, at, LONGEST.min(next - at));
        let mut message = read(&one_line(raw), asker);
        // A terminal or a logger may have cut the line anywhere, also within a word or a number.
        if raw.contains('\n') {
            let joined = read(&raw.replace('\n', ""), asker);
            message = match is_cut(&text[line_start..], raw.len()) {
                true => joined.or(message),
                false => message.or(joined),
            };
        }
        message.site = site::of(text, at);
        let known = pieces.iter_mut().find_map(|piece| match &mut piece.evidence {
            Evidence::Oom(known) if is_the_same(known, &message) => Some(known),
            _ => None,
        });
        if let Some(known) = known {
            known.times += 1;
            if let Some(device) = message.device
                && !known.devices.contains(&device)
            {
                known.devices.push(device);
            }
        } else if pieces.len() < MOST {
            pieces.push(Piece {
                line: line_of(text, at),
                evidence: Evidence::Oom(message),
            });
        }
    }
    // A summary such as `torch.cuda.OutOfMemoryError: CUDA out of memory.` adds nothing to a whole message.
    let tells = |piece: &Piece| matches!(&piece.evidence, Evidence::Oom(m) if m.request.is_some());
    if pieces.iter().any(tells) {
        pieces.retain(|piece| {
            tells(piece) || !matches!(&piece.evidence, Evidence::Oom(m) if matches!(m.asker, Asker::Allocator(_)))
        });
    }
    pieces
}

/// Returns true for the same error of the same device, and for that of another rank of one run, whose figures differ a
/// little.
fn is_the_same(known: &OomMessage, message: &OomMessage) -> bool {
    let is_of_another_rank = message.device.is_some_and(|device| !known.devices.contains(&device))
        && known.total.is_some()
        && known.total == message.total;
    let plain = |message: &OomMessage| OomMessage {
        times: 1,
        site: None,
        devices: Vec::new(),
        ..message.clone()
    };
    known.asker == message.asker && (is_of_another_rank || plain(known) == plain(message))
}

/// Returns true if the first two lines of a message are cut at one column, as a terminal or a logger cuts them.
fn is_cut(text: &str, len: usize) -> bool {
    let mut lines = text.lines();
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return false;
    };
    let (first, second) = (first.chars().count(), second.chars().count());
    first + second < len + 200 && first >= 40 && (first == second || first.abs_diff(second) <= 2 && first > 70)
}

fn read(body: &str, asker: Asker) -> OomMessage {
    let body = Body {
        text: body,
        amounts: amounts(body),
    };
    let allocated = body
        .before(" already allocated")
        .or_else(|| body.before(" is allocated by PyTorch"))
        .or_else(|| body.before(" allocated by PyTorch"))
        .or_else(|| body.after("MPS allocated: "))
        .or_else(|| body.beside("Currently allocated"));
    // PyTorch 1.0 to 1.3 print the cached memory beyond what tensors hold.
    let cached = body.before(" cached");
    let is_rest = |cached: &Amount| allocated.is_some_and(|allocated| cached.bytes < allocated.bytes);
    OomMessage {
        asker,
        allocated,
        device: body.device(),
        request: body
            .after("ried to allocate ")
            .or_else(|| body.after("you tried to allocate "))
            .or_else(|| body.beside("Requested")),
        total: body
            .after("total capacity of ")
            .or_else(|| body.after("total capacty of "))
            .or_else(|| body.before(" total capacity"))
            .or_else(|| body.beside("Device limit")),
        free: body
            .before(" is free")
            .or_else(|| body.before(" free"))
            .or_else(|| body.beside("Free (according to CUDA)")),
        reserved: body
            .before(" reserved in total by PyTorch")
            .or(cached.filter(|cached| !is_rest(cached))),
        unallocated: body
            .before(" is reserved by PyTorch but unallocated")
            .or_else(|| body.before(" reserved by PyTorch but unallocated"))
            .or(cached.filter(is_rest)),
        own: body.after("this process has "),
        others: body.processes(),
        allowed: body.before(" allowed").or_else(|| body.after("max allowed: ")),
        private_pools: body.before(" allocated in private pools"),
        devices: body.device().into_iter().collect(),
        site: None,
        times: 1,
    }
}

/// The text of one message without line breaks, and the amounts in it.
struct Body<'a> {
    text: &'a str,
    amounts: Vec<Found>,
}

impl Body<'_> {
    /// The amount that ends where a phrase begins.
    fn before(&self, phrase: &str) -> Option<Amount> {
        self.text.match_indices(phrase).find_map(|(at, _)| {
            let found = self.amounts.iter().find(|found| found.end == at)?;
            Some(found.amount)
        })
    }

    /// The amount that begins where a phrase ends.
    fn after(&self, phrase: &str) -> Option<Amount> {
        self.text
            .match_indices(phrase)
            .find_map(|(at, _)| self.at(at + phrase.len()))
    }

    /// The amount behind a phrase, blanks and a colon.
    fn beside(&self, phrase: &str) -> Option<Amount> {
        let at = self.text.find(phrase)? + phrase.len();
        let behind = self.text[at..].trim_start_matches([' ', ':']);
        self.at(self.text.len() - behind.len())
    }

    fn at(&self, begin: usize) -> Option<Amount> {
        let found = self.amounts.iter().find(|found| found.begin == begin)?;
        Some(found.amount)
    }

    /// The processes in phrases such as "Process 4242 has 2.10 GiB memory in use."
    fn processes(&self) -> Vec<Process> {
        let parts = self.text.match_indices("Process ");
        parts
            .filter_map(|(at, word)| {
                let rest = &self.text[at + word.len()..];
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                let pid = rest[..digits].parse().ok()?;
                let has = rest[digits..].strip_prefix(" has ")?;
                let holds = self.at(self.text.len() - has.len())?;
                Some(Process { pid, holds })
            })
            .take(64)
            .collect()
    }

    /// The device index in a phrase such as "GPU 0".
    fn device(&self) -> Option<u32> {
        let mut parts = self.text.match_indices("GPU ");
        parts.find_map(|(at, word)| {
            let rest = &self.text[at + word.len()..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[..digits].parse().ok()
        })
    }
}
