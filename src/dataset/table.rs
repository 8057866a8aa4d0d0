//! Records of a file of columns, from pieces of it.

use csv_core::{ReadRecordResult, ReaderBuilder};
use serde_json::{Map, Value};

/// Most bytes of a record; what is longer cannot be read.
const MOST: usize = 64 << 20;

/// A record, by the names of its columns.
type Record = Map<String, Value>;

/// Reads columns under a line of names.
pub struct Table {
    reader: Option<csv_core::Reader>,
    delimiter: Option<u8>,
    /// The first line, before it tells what separates columns.
    head: Vec<u8>,
    names: Vec<String>,
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// Lengths of the two that are filled.
    filled: (usize, usize),
    is_stuck: bool,
}

impl Table {
    /// Begins a table, of tabs or of whatever its first line has most of.
    pub fn new(has_tabs: bool) -> Self {
        Self {
            reader: None,
            delimiter: has_tabs.then_some(b'\t'),
            head: Vec::new(),
            names: Vec::new(),
            fields: vec![0; 1 << 12],
            ends: vec![0; 64],
            filled: (0, 0),
            is_stuck: false,
        }
    }

    /// Passes each record that ends in a piece to `take`; `None` for one that cannot be read.
    pub fn feed(&mut self, piece: &[u8], take: &mut dyn FnMut(Option<Record>)) {
        if self.reader.is_some() {
            return self.read(piece, take);
        }
        self.head.extend_from_slice(piece);
        if self.head.contains(&b'\n') || self.head.len() > MOST {
            self.begin(take);
        }
    }

    /// Begins with the line of names.
    fn begin(&mut self, take: &mut dyn FnMut(Option<Record>)) {
        let head = std::mem::take(&mut self.head);
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let most = [b',', b'\t', b';', b'|'].into_iter().rev();
        let most = most.max_by_key(|sign| line.iter().filter(|byte| *byte == sign).count());
        let delimiter = self.delimiter.or(most).unwrap_or(b',');
        self.reader = Some(ReaderBuilder::new().delimiter(delimiter).build());
        self.read(&head, take);
    }

    fn read(&mut self, mut piece: &[u8], take: &mut dyn FnMut(Option<Record>)) {
        // Nothing would say that the file ends.
        while !piece.is_empty() && !self.is_stuck {
            let (result, taken) = self.step(piece);
            piece = piece.get(taken..).unwrap_or_default();
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return,
                other => self.follow(other, take),
            }
        }
    }

    fn step(&mut self, piece: &[u8]) -> (ReadRecordResult, usize) {
        let Some(reader) = &mut self.reader else {
            return (ReadRecordResult::End, 0);
        };
        let (fields, ends) = (&mut self.fields[self.filled.0..], &mut self.ends[self.filled.1..]);
        let (result, taken, written, ended) = reader.read_record(piece, fields, ends);
        self.filled.0 += written;
        self.filled.1 += ended;
        (result, taken)
    }

    fn follow(&mut self, result: ReadRecordResult, take: &mut dyn FnMut(Option<Record>)) {
        match result {
            ReadRecordResult::OutputFull if self.fields.len() >= MOST => {
                // A quote that nothing closes takes all that follows.
                self.is_stuck = true;
                take(None);
            }
            ReadRecordResult::OutputFull => self.fields.resize(self.fields.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            ReadRecordResult::Record => self.end(take),
            ReadRecordResult::InputEmpty | ReadRecordResult::End => {}
        }
    }

    /// Ends a record: the first is that of names.
    fn end(&mut self, take: &mut dyn FnMut(Option<Record>)) {
        let ends = &self.ends[..self.filled.1];
        let starts = [0].into_iter().chain(ends.iter().copied());
        let cells: Vec<String> = starts
            .zip(ends)
            .map(|(start, end)| String::from_utf8_lossy(&self.fields[start..*end]).into_owned())
            .collect();
        self.filled = (0, 0);
        if self.names.is_empty() {
            self.names = cells.into_iter().map(|name| name.trim().to_owned()).collect();
            return;
        }
        let record = (cells.len() <= self.names.len()).then(|| {
            let cells = self.names.iter().cloned().zip(cells);
            cells.map(|(name, cell)| (name, value(cell))).collect()
        });
        take(record);
    }

    /// Passes the last record, which nothing ends but the file.
    pub fn finish(&mut self, take: &mut dyn FnMut(Option<Record>)) {
        if self.reader.is_none() && !self.head.is_empty() {
            self.begin(take);
        }
        // No input says that the file ends; a cell may still need room.
        while !self.is_stuck && self.reader.is_some() {
            match self.step(&[]).0 {
                ReadRecordResult::End | ReadRecordResult::InputEmpty => return,
                other => self.follow(other, take),
            }
        }
    }
}

/// Value of a cell: a list or an object, a number, or text.
fn value(cell: String) -> Value {
    let is_nested = cell.starts_with(['[', '{']);
    let nested = is_nested.then(|| serde_json::from_str(&cell).ok()).flatten();
    let number = || cell.trim().parse::<u64>().ok().map(Value::from);
    nested.or_else(number).unwrap_or(Value::String(cell))
}
