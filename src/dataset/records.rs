//! JSON objects of a file, a line each or in one array, from pieces of it.

/// Most bytes of a record; what is longer cannot be read.
const MOST: usize = 64 << 20;

/// Splits a file into its objects.
pub struct Records {
    /// Bytes of a record that is not whole yet.
    pending: Vec<u8>,
    /// Braces and brackets that are open around the next byte; `None` for a record a line.
    nested: Option<Nesting>,
    is_too_long: bool,
}

/// Place within an array of objects.
#[derive(Default)]
struct Nesting {
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
    /// The array has ended.
    is_over: bool,
}

impl Records {
    /// Begins an array, or a record a line.
    pub fn new(is_array: bool) -> Self {
        Self {
            pending: Vec::new(),
            nested: is_array.then(Nesting::default),
            is_too_long: false,
        }
    }

    /// Passes each record that ends in a piece to `take`; `None` for one that is too long.
    pub fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) {
        match &mut self.nested {
            None => self.feed_lines(piece, take),
            Some(_) => piece.iter().for_each(|byte| self.feed_byte(*byte, take)),
        }
    }

    fn feed_lines(&mut self, piece: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) {
        let mut lines = piece.split(|byte| *byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            self.keep(line);
            self.end(take);
        }
        self.keep(last);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.pending.len() + bytes.len() > MOST {
            self.is_too_long = true;
            self.pending.clear();
        } else if !self.is_too_long {
            self.pending.extend_from_slice(bytes);
        }
    }

    /// Ends the pending record; a blank one is none.
    fn end(&mut self, take: &mut dyn FnMut(Option<&[u8]>)) {
        if std::mem::take(&mut self.is_too_long) {
            take(None);
        } else if !self.pending.trim_ascii().is_empty() {
            take(Some(&self.pending));
        }
        self.pending.clear();
    }

    fn feed_byte(&mut self, byte: u8, take: &mut dyn FnMut(Option<&[u8]>)) {
        let Some(nested) = &mut self.nested else { return };
        if nested.is_over {
            return;
        }
        let was = nested.depth;
        nested.follow(byte);
        let is = nested.depth;
        // The array itself is the first level.
        if was >= 2 || is >= 2 {
            self.keep(&[byte]);
        }
        if was == 2 && is == 1 {
            self.end(take);
        }
    }

    /// Passes the last record, which nothing ends but the file.
    pub fn finish(&mut self, take: &mut dyn FnMut(Option<&[u8]>)) {
        self.end(take);
    }
}

impl Nesting {
    fn follow(&mut self, byte: u8) {
        if self.is_in_string {
            match (self.is_escaped, byte) {
                (true, _) => self.is_escaped = false,
                (false, b'\\') => self.is_escaped = true,
                (false, b'"') => self.is_in_string = false,
                (false, _) => {}
            }
            return;
        }
        match byte {
            b'"' => self.is_in_string = true,
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_over = self.depth == 0;
            }
            _ => {}
        }
    }
}
