//! Generates pickles as Python writes them: snapshots that PyTorch might write, and some that nobody would. Randomly
//! damaged pickles alone would be refused at their first opcodes and never reach deeper code.

use crate::mutate::Random;

/// Generates pickles.
pub struct Pickler<'a> {
    random: &'a mut Random,
    out: Vec<u8>,
    /// Number of entries in the memo.
    kept: u32,
    /// One of this many values is replaced by an unexpected one.
    strange: usize,
    /// Memo indices of the lists of frames written so far.
    stacks: Vec<u32>,
}

const ACTIONS: [&str; 9] = [
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
];

const STATES: [&str; 4] = [
    "active_allocated",
    "active_awaiting_free",
    "active_pending_free",
    "inactive",
];

const FILES: [&str; 6] = [
    "/x/site-packages/torch/optim/adam.py",
    "/x/site-packages/torch/nn/modules/linear.py",
    "/x/site-packages/transformers/models/gpt2/modeling_gpt2.py",
    "C:\\x\\torch\\optim\\sgd.py",
    "??",
    "train.py",
];

const FUNCTIONS: [&str; 8] = [
    "forward",
    "backward",
    "_init_group",
    "__init__",
    "recompute_fn",
    "_call_impl",
    "wrapper",
    "main",
];

impl<'a> Pickler<'a> {
    /// Generates a snapshot with up to a few hundred events.
    pub fn snapshot(random: &'a mut Random) -> Vec<u8> {
        let mut pickler = Self::new(random);
        pickler.out.extend(b"\x80\x04");
        pickler.dict(|p| {
            p.key("device_traces");
            p.traces();
            p.key("segments");
            p.segments();
            p.key("allocator_settings");
            p.settings();
        });
        pickler.out.push(b'.');
        pickler.out
    }

    /// Generates any plain data: nested, shared and cyclic containers, in every protocol.
    pub fn anything(random: &'a mut Random) -> Vec<u8> {
        let mut pickler = Self::new(random);
        if pickler.random.one_in(2) {
            pickler.out.extend([0x80, 2 + pickler.random.below(4) as u8]);
        }
        let depth = pickler.random.below(12);
        pickler.value(depth);
        pickler.out.push(b'.');
        pickler.out
    }

    fn new(random: &'a mut Random) -> Self {
        // Half of them are valid.
        let strange = if random.one_in(2) {
            usize::MAX
        } else {
            200 + random.below(20_000)
        };
        Self {
            random,
            out: Vec::new(),
            kept: 0,
            strange,
            stacks: Vec::new(),
        }
    }

    fn is_strange(&mut self) -> bool {
        self.strange != usize::MAX && self.random.one_in(self.strange)
    }

    fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.extend(b"}\x94(");
        self.kept += 1;
        fill(self);
        self.out.push(b'u');
    }

    fn list(&mut self, len: usize, mut item: impl FnMut(&mut Self)) {
        self.out.extend(b"]\x94(");
        self.kept += 1;
        (0..len).for_each(|_| item(self));
        self.out.push(b'e');
    }

    /// Writes a key; occasionally it is missing or different.
    fn key(&mut self, key: &str) {
        let key = if self.is_strange() { "other" } else { key };
        self.plain_text(key);
    }

    fn plain_text(&mut self, text: &str) {
        self.out.extend([0x8c, text.len() as u8]);
        self.out.extend(text.as_bytes());
    }

    fn text(&mut self, text: &str) {
        match self.is_strange() {
            true => self.value(2),
            false => self.plain_text(text),
        }
    }

    fn number(&mut self, value: u64) {
        if self.is_strange() {
            return self.value(2);
        }
        match value {
            0..=255 => self.out.extend([b'K', value as u8]),
            256..=65535 => {
                self.out.push(b'M');
                self.out.extend((value as u16).to_le_bytes());
            }
            _ => {
                self.out.extend([0x8a, 9]);
                self.out.extend(value.to_le_bytes());
                self.out.push(0);
            }
        }
    }

    fn traces(&mut self) {
        let devices = 1 + self.random.below(3);
        self.list(devices, |p| {
            let events = p.random.below(300);
            let mut live: Vec<(u64, u64)> = Vec::new();
            p.list(events, |p| p.event(&mut live));
        });
    }

    /// Writes an event: usually an allocation, a free request or a completed free, as a program makes them; otherwise
    /// any action.
    fn event(&mut self, live: &mut Vec<(u64, u64)>) {
        let size = (1 + self.random.below(64) as u64) << self.random.below(24);
        let (action, address, size) = match self.random.below(8) {
            0..=3 => {
                let address = (self.random.next() >> 17) & !511;
                live.push((address, size));
                (0, address, size)
            }
            4..=6 if !live.is_empty() => {
                let at = self.random.below(live.len());
                let (address, size) = live[at];
                let action = 1 + self.random.below(2);
                if action == 2 {
                    live.swap_remove(at);
                }
                (action, address, size)
            }
            _ => (self.random.below(ACTIONS.len()), self.random.next() >> 20, size),
        };
        self.dict(|p| {
            p.key("action");
            p.text(ACTIONS[action]);
            p.key(if action == 8 { "device_free" } else { "addr" });
            p.number(address);
            p.key("size");
            p.number(size);
            p.key("stream");
            let stream = p.random.below(3) as u64;
            p.number(stream);
            p.key("frames");
            p.stack();
        });
    }

    fn stack(&mut self) {
        if !self.stacks.is_empty() && self.random.one_in(2) {
            let at = self.stacks[self.random.below(self.stacks.len())];
            self.out.push(b'j');
            return self.out.extend(at.to_le_bytes());
        }
        self.stacks.push(self.kept);
        let depth = self.random.below(12);
        self.list(depth, |p| {
            p.dict(|p| {
                p.key("name");
                let name = FUNCTIONS[p.random.below(FUNCTIONS.len())];
                p.text(name);
                p.key("filename");
                let file = FILES[p.random.below(FILES.len())];
                p.text(file);
                p.key("line");
                let line = p.random.below(2000) as u64;
                p.number(line);
            });
        });
    }

    fn segments(&mut self) {
        let segments = self.random.below(8);
        self.list(segments, |p| {
            let address = p.random.next() >> 17;
            p.dict(|p| {
                p.key("address");
                p.number(address);
                p.key("total_size");
                let size = (1 + p.random.below(64) as u64) << 20;
                p.number(size);
                p.key("device");
                let device = p.random.below(3) as u64;
                p.number(device);
                p.key("blocks");
                let blocks = p.random.below(20);
                p.list(blocks, |p| {
                    p.dict(|p| {
                        p.key("size");
                        let size = (1 + p.random.below(4096) as u64) << 9;
                        p.number(size);
                        p.key("state");
                        let state = STATES[p.random.below(STATES.len())];
                        p.text(state);
                        p.key("frames");
                        p.stack();
                    });
                });
            });
        });
    }

    fn settings(&mut self) {
        self.dict(|p| {
            p.key("PYTORCH_CUDA_ALLOC_CONF");
            p.text("expandable_segments:True");
            p.key("expandable_segments");
            let on = p.random.one_in(2);
            p.out.push(if on { 0x88 } else { 0x89 });
            p.key("max_split_size");
            let size = p.random.next() >> p.random.below(64);
            p.number(size);
        });
    }

    /// Writes a value nested at most `depth` levels deep.
    fn value(&mut self, depth: usize) {
        match self.random.below(if depth == 0 { 9 } else { 16 }) {
            0 => self.out.push(b'N'),
            1 => self.out.push(0x88),
            2 => self.out.extend([b'K', 7]),
            3 => {
                let number = self.random.next();
                self.out.push(b'J');
                self.out.extend((number as u32).to_le_bytes());
            }
            4 => {
                let (len, number) = (self.random.below(17), self.random.next().to_le_bytes());
                self.out.extend([0x8a, len as u8]);
                self.out.extend(number.iter().chain(&number).take(len));
            }
            5 => {
                self.out.push(b'G');
                let number = self.random.next();
                self.out.extend(number.to_be_bytes());
            }
            6 => self.plain_text("a text"),
            7 => self.out.extend(b"X\x03\x00\x00\x00\xff\xfe\x00"),
            8 if self.kept > 0 => {
                // May refer to a container that is still being filled.
                let at = self.random.below(self.kept as usize) as u32;
                self.out.push(b'j');
                self.out.extend(at.to_le_bytes());
            }
            8 => self.out.extend(b"I01\n"),
            9 | 10 => {
                let len = self.random.below(6);
                self.list(len, |p| p.value(depth - 1));
            }
            11 | 12 => {
                let len = self.random.below(6);
                self.dict(|p| (0..2 * len).for_each(|_| p.value(depth - 1)));
            }
            13 => {
                self.value(depth - 1);
                self.out.push(0x85);
            }
            14 => {
                self.out.push(b'(');
                let len = self.random.below(4);
                (0..len).for_each(|_| self.value(depth - 1));
                self.out.push(b't');
            }
            _ => {
                self.out.extend(b"\x8f(");
                self.value(depth - 1);
                self.out.push(0x90);
            }
        }
    }
}
