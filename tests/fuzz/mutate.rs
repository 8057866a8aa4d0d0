//! Damages inputs, as faulty programs and transfers do, and worse.

/// Numbers that often break readers.
const NUMBERS: [&str; 10] = [
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "99999999999999999999999999",
    "1e308",
    "0.0000001",
    "17179869184.00 GiB",
    "NaN",
    "512",
];

/// A pseudorandom number generator, reproducible from its seed.
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Next number, by xorshift64* (Vigna 2016).
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 up to, but not including, a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// True with probability 1/`times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Generates a new input.
pub type Write = fn(&mut Random) -> Vec<u8>;

/// Produces inputs from seeds and from a generator of new ones.
pub struct Mutator {
    random: Random,
    seeds: Vec<Vec<u8>>,
    write: Option<Write>,
}

impl Mutator {
    /// Creates a mutator from a random seed, valid inputs to damage, and a generator of more.
    pub fn new(seed: u64, (seeds, write): (Vec<Vec<u8>>, Option<Write>)) -> Self {
        Self {
            random: Random::new(seed),
            seeds,
            write,
        }
    }

    fn random(&mut self) -> u64 {
        self.random.next()
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    /// Next input: usually a generated one, half of them with up to three faults; otherwise a seed with one to sixteen
    /// faults.
    pub fn next(&mut self) -> Vec<u8> {
        if let Some(write) = self.write.filter(|_| !self.random.one_in(8)) {
            let mut bytes = write(&mut self.random);
            let faults = if self.random.one_in(2) { self.below(4) } else { 0 };
            (0..faults).for_each(|_| self.damage(&mut bytes));
            return bytes;
        }
        let at = self.below(self.seeds.len());
        let mut bytes = self.seeds[at].clone();
        for _ in 0..=self.below(16) {
            self.damage(&mut bytes);
        }
        bytes.truncate(1 << 21);
        bytes
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let (a, b) = (self.below(bytes.len()), self.below(bytes.len()));
        let (low, high) = (a.min(b), a.max(b).min(a.min(b) + 4096));
        match self.below(10) {
            0 => flip(bytes, a, 1 << self.below(8)),
            1 => flip(bytes, a, self.random() as u8),
            2 => bytes.truncate(a),
            3 => drop(bytes.drain(low..high)),
            4 => {
                let part = bytes[low..high].to_vec();
                bytes.splice(low..low, part);
            }
            5 => {
                let other = self.below(self.seeds.len());
                let from = self.below(self.seeds[other].len());
                let part: Vec<u8> = self.seeds[other][from..].iter().copied().take(2048).collect();
                bytes.splice(a..a, part);
            }
            6 => self.number(bytes, a),
            7 => bytes
                .splice(a..a, (0..8).map(|_| b"\n ,:=|{}[]'\"%./-"[(b + a) % 16]))
                .for_each(drop),
            8 => bytes.splice(a..a, self.random().to_le_bytes()).for_each(drop),
            // Repeat one byte a thousand times: depth, width, long words.
            _ => {
                let byte = bytes.get(a).copied().unwrap_or(b'(');
                bytes.splice(a..a, std::iter::repeat_n(byte, 1000)).for_each(drop);
            }
        }
    }

    /// Replaces a number by another one.
    fn number(&mut self, bytes: &mut Vec<u8>, from: usize) {
        let new = NUMBERS[self.below(NUMBERS.len())];
        let Some(begin) = bytes[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else {
            return;
        };
        let len = bytes[begin..].iter().take_while(|b| b.is_ascii_digit()).count();
        bytes.splice(begin..begin + len, new.bytes());
    }
}

fn flip(bytes: &mut [u8], at: usize, by: u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= by;
    }
}
