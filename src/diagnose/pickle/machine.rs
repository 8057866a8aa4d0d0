//! Executes the opcodes of a pickle.

use std::str::FromStr;

use super::arena::{Arena, Shape};
use super::error::{Fault, PickleError};
use super::input::Input;
use super::opcode as op;
use super::value::{Unpacked, Value};

/// Executes opcodes up to `STOP` and returns all storage, and the value left on the stack.
pub fn run(bytes: &[u8]) -> Result<(Arena, Value), PickleError> {
    let mut machine = Machine {
        input: Input::new(bytes),
        arena: Arena::default(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: Vec::new(),
    };
    loop {
        let at = machine.input.at;
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => return Ok((machine.arena, root)),
            Err(fault) => return Err(PickleError { at, fault }),
        }
    }
}

struct Machine<'a> {
    input: Input<'a>,
    arena: Arena,
    stack: Vec<Value>,
    /// Stack heights at each open `MARK`.
    marks: Vec<usize>,
    memo: Vec<Value>,
}

impl Machine<'_> {
    /// Executes one opcode; returns the result at `STOP`.
    fn step(&mut self) -> Result<Option<Value>, Fault> {
        let code = self.input.byte()?;
        match code {
            op::STOP => return self.pop().map(Some),
            op::PROTO => drop(self.input.byte()?),
            op::FRAME => drop(self.input.take(8)?),
            op::MARK => self.marks.push(self.stack.len()),
            op::POP => self.pop_or_mark()?,
            op::POP_MARK => drop(self.since_mark()?),
            op::DUP => self.stack.push(self.top()?),
            op::NONE => self.stack.push(Value::NONE),
            op::NEWTRUE => self.push(Unpacked::Bool(true)),
            op::NEWFALSE => self.push(Unpacked::Bool(false)),
            op::MEMOIZE => self.memo.push(self.top()?),
            op::PUT | op::BINPUT | op::LONG_BINPUT => self.put(code)?,
            op::GET | op::BINGET | op::LONG_BINGET => self.get(code)?,
            op::BININT | op::BININT1 | op::BININT2 | op::LONG1 | op::LONG4 | op::INT | op::LONG => {
                self.integer(code)?;
            }
            op::BINFLOAT | op::FLOAT => self.float(code)?,
            op::UNICODE | op::STRING => self.line_text(code)?,
            op::SHORT_BINUNICODE | op::SHORT_BINSTRING | op::SHORT_BINBYTES => self.text::<1>()?,
            op::BINUNICODE | op::BINSTRING | op::BINBYTES => self.text::<4>()?,
            op::BINUNICODE8 | op::BINBYTES8 => self.text::<8>()?,
            _ => self.container(code)?,
        }
        Ok(None)
    }

    fn container(&mut self, code: u8) -> Result<(), Fault> {
        match code {
            op::EMPTY_LIST => self.make(Shape::List, self.stack.len()),
            op::EMPTY_DICT => self.make(Shape::Dict, self.stack.len()),
            op::EMPTY_SET => self.make(Shape::Set, self.stack.len()),
            op::EMPTY_TUPLE => self.make(Shape::Tuple, self.stack.len()),
            op::TUPLE1 => self.make_of_last(1),
            op::TUPLE2 => self.make_of_last(2),
            op::TUPLE3 => self.make_of_last(3),
            op::LIST => self.make_since_mark(Shape::List),
            op::TUPLE => self.make_since_mark(Shape::Tuple),
            op::FROZENSET => self.make_since_mark(Shape::Set),
            op::DICT => self.make_since_mark(Shape::Dict),
            op::APPEND => self.add_last(Shape::List, 1),
            op::SETITEM => self.add_last(Shape::Dict, 2),
            op::APPENDS => self.add_since_mark(Shape::List),
            op::ADDITEMS => self.add_since_mark(Shape::Set),
            op::SETITEMS => self.add_since_mark(Shape::Dict),
            _ => Err(op::refused(code).map_or(Fault::Unknown(code), Fault::Refused)),
        }
    }

    fn push(&mut self, value: Unpacked) {
        self.stack.push(Value::pack(value));
    }

    /// Stack height below which an opcode may not reach: that of the last mark.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Value, Fault> {
        let above = self.stack.get(self.floor()..).unwrap_or_default();
        above.last().copied().ok_or(Fault::Stack)
    }

    fn pop(&mut self) -> Result<Value, Fault> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// Executes `POP`, which removes a mark if no value lies above it.
    fn pop_or_mark(&mut self) -> Result<(), Fault> {
        if self.pop().is_err() {
            self.marks.pop().ok_or(Fault::Stack)?;
        }
        Ok(())
    }

    /// Closes the last mark and returns its stack height; the values above stay on the stack.
    fn mark(&mut self) -> Result<usize, Fault> {
        self.marks.pop().ok_or(Fault::Stack)
    }

    fn since_mark(&mut self) -> Result<(), Fault> {
        let begin = self.mark()?;
        self.stack.truncate(begin);
        Ok(())
    }

    /// Replaces the values from stack height `begin` on with a container of them.
    fn make(&mut self, shape: Shape, begin: usize) -> Result<(), Fault> {
        let items = self.stack.get(begin..).ok_or(Fault::Stack)?;
        if shape == Shape::Dict && !items.len().is_multiple_of(2) {
            return Err(Fault::Stack);
        }
        let made = self.arena.container(shape, items)?;
        self.stack.truncate(begin);
        self.stack.push(made);
        Ok(())
    }

    fn make_of_last(&mut self, len: usize) -> Result<(), Fault> {
        let begin = self.last(len)?;
        self.make(Shape::Tuple, begin)
    }

    fn make_since_mark(&mut self, shape: Shape) -> Result<(), Fault> {
        let begin = self.mark()?;
        self.make(shape, begin)
    }

    /// Stack height at which the last `len` values begin.
    fn last(&self, len: usize) -> Result<usize, Fault> {
        let begin = self.stack.len().checked_sub(len);
        begin.filter(|&begin| begin >= self.floor()).ok_or(Fault::Stack)
    }

    fn add_last(&mut self, shape: Shape, len: usize) -> Result<(), Fault> {
        let begin = self.last(len)?;
        self.add(shape, begin)
    }

    fn add_since_mark(&mut self, shape: Shape) -> Result<(), Fault> {
        let begin = self.mark()?;
        self.add(shape, begin)
    }

    /// Adds the values from stack height `begin` on to the container just below them.
    fn add(&mut self, shape: Shape, begin: usize) -> Result<(), Fault> {
        let below = begin.checked_sub(1).filter(|&below| below >= self.floor());
        let container = match self.stack[below.ok_or(Fault::Stack)?].unpack() {
            Unpacked::Container(container) if self.arena.shape(container) == shape => container,
            _ => return Err(Fault::Stack),
        };
        let items = &self.stack[begin..];
        if shape == Shape::Dict && !items.len().is_multiple_of(2) {
            return Err(Fault::Stack);
        }
        self.arena.add(container, items)?;
        self.stack.truncate(begin);
        Ok(())
    }

    /// Stores the top of the stack in the memo. Picklers number entries consecutively; gaps are refused because they
    /// would only waste memory.
    fn put(&mut self, code: u8) -> Result<(), Fault> {
        let index = self.memo_index(code)?;
        let top = self.top()?;
        // Python 2's C pickler counts from one.
        if index == self.memo.len() + 1 && self.memo.is_empty() {
            self.memo.push(Value::NONE);
        }
        if index == self.memo.len() {
            self.memo.push(top);
        }
        *self.memo.get_mut(index).ok_or(Fault::Memo)? = top;
        Ok(())
    }

    fn get(&mut self, code: u8) -> Result<(), Fault> {
        let index = self.memo_index(code)?;
        self.stack.push(*self.memo.get(index).ok_or(Fault::Memo)?);
        Ok(())
    }

    fn memo_index(&mut self, code: u8) -> Result<usize, Fault> {
        match code {
            op::BINPUT | op::BINGET => self.input.length::<1>(),
            op::LONG_BINPUT | op::LONG_BINGET => self.input.length::<4>(),
            _ => parse(self.input.line()?),
        }
    }

    fn integer(&mut self, code: u8) -> Result<(), Fault> {
        let value = match code {
            op::BININT1 => self.input.byte()?.into(),
            op::BININT2 => u16::from_le_bytes(self.input.array()?).into(),
            op::BININT => i32::from_le_bytes(self.input.array()?).into(),
            op::LONG1 => {
                let len = self.input.length::<1>()?;
                two_s_complement(self.input.take(len)?)?
            }
            op::LONG4 => {
                let len = self.input.length::<4>()?;
                two_s_complement(self.input.take(len)?)?
            }
            _ => return self.line_integer(),
        };
        let value = self.arena.integer(value)?;
        self.stack.push(value);
        Ok(())
    }

    /// `I01` and `I00` are booleans; a long ends in `L`.
    fn line_integer(&mut self) -> Result<(), Fault> {
        let value = match self.input.line()? {
            b"01" => Value::pack(Unpacked::Bool(true)),
            b"00" => Value::pack(Unpacked::Bool(false)),
            line => self.arena.integer(parse(line.strip_suffix(b"L").unwrap_or(line))?)?,
        };
        self.stack.push(value);
        Ok(())
    }

    fn float(&mut self, code: u8) -> Result<(), Fault> {
        let value = match code {
            op::BINFLOAT => f64::from_be_bytes(self.input.array()?),
            _ => parse(self.input.line()?)?,
        };
        let value = self.arena.float(value)?;
        self.stack.push(value);
        Ok(())
    }

    /// Pushes a text with a length prefix of `N` bytes.
    fn text<const N: usize>(&mut self) -> Result<(), Fault> {
        let len = self.input.length::<N>()?;
        let at = self.input.at;
        self.input.take(len)?;
        let value = self.arena.text(at, len)?;
        self.stack.push(value);
        Ok(())
    }

    /// Pushes a text of protocol 0 as written: escapes stay, `STRING`'s quotes are removed.
    fn line_text(&mut self, code: u8) -> Result<(), Fault> {
        let at = self.input.at;
        let line = self.input.line()?;
        let quoted = code == op::STRING;
        if quoted && (line.len() < 2 || line.first() != line.last()) {
            return Err(Fault::Malformed);
        }
        let edge = usize::from(quoted);
        let value = self.arena.text(at + edge, line.len() - 2 * edge)?;
        self.stack.push(value);
        Ok(())
    }
}

fn parse<T: FromStr>(line: &[u8]) -> Result<T, Fault> {
    let text = str::from_utf8(line).map_err(|_| Fault::Malformed)?;
    text.trim().parse().map_err(|_| Fault::Malformed)
}

/// Decodes a little-endian integer in two's complement; no bytes mean zero.
fn two_s_complement(bytes: &[u8]) -> Result<i128, Fault> {
    let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide.get_mut(..bytes.len()).ok_or(Fault::Wide)?.copy_from_slice(bytes);
    Ok(i128::from_le_bytes(wide))
}
