//! Parses the commonest lines as the recorder writes them: compact, keys in any order, each once.
//!
//! Most of a recording's bytes are lines of operations, and a general JSON parser takes most of the time of reading them.
//! Whatever is written otherwise yields nothing here, and goes to that parser, which says what is wrong.

use std::borrow::Cow;

use super::keywords::Keywords;
use super::lines::{Free, Line, Op, Why};
use super::number::{Count, Reference, digits, polynomial};
use super::value::{Value, of_text};

/// Maximum depth of nested lists.
const MOST_DEPTH: u32 = 16;

/// Parses a line of a common type.
pub(super) fn line(line: &str) -> Option<Line<'_>> {
    match line.as_bytes().get(6)? {
        b'o' => Some(Line::Op(Box::new(operation(line)?))),
        b'f' => Some(Line::Free(free(line)?)),
        b'w' => Some(Line::Why(why(line)?)),
        _ => None,
    }
}

/// Parses a line `op`.
fn operation(line: &str) -> Option<Op<'_>> {
    let mut scan = Scan::after(line, r#"{"t":"op""#)?;
    let mut op = Op::default();
    let mut seen = 0;
    while scan.takes(b',') {
        let bit = match scan.key()? {
            "f" => {
                op.function = Reference::Number(scan.number()?);
                0
            }
            "a" => {
                op.args = scan.list(|scan| scan.value(0))?;
                1
            }
            "k" => {
                op.kwargs = scan.keywords()?;
                2
            }
            "o" => {
                op.outputs = scan.list(|scan| scan.value(0))?;
                3
            }
            "n" => {
                op.new_storages = scan.list(Scan::new_storage)?;
                4
            }
            "b" => {
                op.autograd_thread = u8::try_from(scan.number()?).ok()?;
                5
            }
            "v" => {
                op.node = Some(scan.number()?);
                6
            }
            "mod" => {
                op.module = Some(scan.number()?);
                7
            }
            "l" => {
                op.source_line = Some(scan.number()?);
                8
            }
            "st" => {
                op.stream = u32::try_from(scan.number()?).ok()?;
                9
            }
            _ => return None,
        };
        mark(&mut seen, bit)?;
    }
    scan.ends()?;
    (seen & 1 == 1).then_some(op)
}

/// Parses a line `why`.
fn why(line: &str) -> Option<Why<'_>> {
    let mut scan = Scan::after(line, r#"{"t":"why""#)?;
    let mut why = Why::default();
    let mut seen = 0;
    while scan.takes(b',') {
        let bit = match scan.key()? {
            "s" => {
                why.storage = scan.number()?;
                0
            }
            "is" => {
                why.is = Cow::Borrowed(scan.text()?);
                1
            }
            "v" => {
                why.node = Some(scan.number()?);
                2
            }
            "p" => {
                why.param = Some(scan.number()?);
                3
            }
            "name" => {
                why.name = Some(Cow::Borrowed(scan.text()?));
                4
            }
            _ => return None,
        };
        mark(&mut seen, bit)?;
    }
    scan.ends()?;
    (seen & 0b11 == 0b11).then_some(why)
}

/// Marks a key as seen, unless it was seen before.
fn mark(seen: &mut u32, bit: u32) -> Option<()> {
    let is_new = *seen & (1 << bit) == 0;
    *seen |= 1 << bit;
    is_new.then_some(())
}

/// Parses a line `free`.
fn free(line: &str) -> Option<Free> {
    let mut scan = Scan::after(line, r#"{"t":"free","s":"#)?;
    let storages = scan.list(Scan::number)?;
    scan.ends()?;
    Some(Free { storages })
}

/// A place in a line.
struct Scan<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn after(line: &'a str, start: &str) -> Option<Self> {
        let at = start.len();
        line.starts_with(start).then_some(Self { line, at })
    }

    fn byte(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Passes a byte if it is the next one.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.byte() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Checks that the object ends here, and the line after it.
    fn ends(&mut self) -> Option<()> {
        self.expect(b'}')?;
        self.line[self.at..].trim_end().is_empty().then_some(())
    }

    /// Parses a text without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let rest = &self.line[self.at..];
        let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
        self.at += end;
        self.expect(b'"')?;
        Some(&rest[..end])
    }

    /// Parses the name of a field, and the colon after it.
    fn key(&mut self) -> Option<&'a str> {
        let key = self.text()?;
        self.expect(b':')?;
        Some(key)
    }

    /// Parses a nonnegative integer, if that is all that stands here.
    fn number(&mut self) -> Option<u64> {
        let begin = &self.line.as_bytes()[self.at..];
        let (value, rest) = digits(begin)?;
        let length = begin.len() - rest.len();
        // JSON forbids leading zeros.
        let is_plain = begin[0] != b'0' || length == 1;
        self.at += length;
        (is_plain && matches!(rest.first(), Some(b',' | b']' | b'}'))).then_some(value)
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.expect(b'[')?;
        let mut all = Vec::new();
        if self.takes(b']') {
            return Some(all);
        }
        loop {
            all.push(item(self)?);
            if !self.takes(b',') {
                self.expect(b']')?;
                return Some(all);
            }
        }
    }

    /// Parses a storage that came to be, and its bytes.
    fn new_storage(&mut self) -> Option<(u64, Count)> {
        self.expect(b'[')?;
        let storage = self.number()?;
        self.expect(b',')?;
        let bytes = match self.byte()? {
            b'"' => Count::Varied(polynomial(self.text()?)?),
            _ => Count::Fixed(self.number()?),
        };
        self.expect(b']')?;
        Some((storage, bytes))
    }

    fn keywords(&mut self) -> Option<Keywords<'a>> {
        self.expect(b'{')?;
        let mut all = Vec::new();
        if self.takes(b'}') {
            return Some(Keywords(all));
        }
        loop {
            let name = self.key()?;
            all.push((Cow::Borrowed(name), self.value(0)?));
            if !self.takes(b',') {
                self.expect(b'}')?;
                return Some(Keywords(all));
            }
        }
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        match self.byte()? {
            b'"' => of_text(self.text()?),
            b'[' if depth < MOST_DEPTH => Some(Value::List(self.list(|scan| scan.value(depth + 1))?)),
            b'[' | b'{' => None,
            _ => self.atom(),
        }
    }

    /// Parses a number, a truth value or null.
    fn atom(&mut self) -> Option<Value> {
        let begin = self.at;
        if let Some(number) = self.number() {
            return Some(i64::try_from(number).map_or(Value::Other, Value::Int));
        }
        let rest = &self.line[begin..];
        let end = rest.bytes().position(|byte| matches!(byte, b',' | b']' | b'}'))?;
        self.at = begin + end;
        serde_json::from_str(&rest[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_recorder_are_read_as_by_the_general_parser() {
        for line in [
            r##"{"t":"op","f":3,"a":["#2:1","#15:7","#4:8"],"k":{"beta":1},"o":["#31:9"],"n":[[31,1179648]],"mod":4,"l":12}"##,
            r##"{"t":"op","f":9,"a":["#31:9:64",[2,-1,[]],true,null],"o":["#77:7"],"n":[[77,0],[78,5]],"b":1,"v":5,"mod":4,"l":12}"##,
            r##"{"t":"op","f":0,"a":[0.31947155212313627,-0,1e-5,1.5,99999999999999999999],"k":{"dtype":"%bf16","x":"@cuda:0","y":"=ä","z":"~-inf"}}"##,
            r##"{"t":"op","f":2,"a":["$3","#h:4"],"o":["#5:6"],"n":[[5,"$12"]],"st":7}"##,
            r##"{"t":"op","f":2,"a":[0,9223372036854775807,9223372036854775808,18446744073709551615]}"##,
            r##"{"t":"op","f":1}"##,
            "{\"t\":\"op\",\"f\":1}\n",
        ] {
            let read = operation(line).unwrap_or_else(|| panic!("{line}"));
            let wanted: Op<'_> = serde_json::from_str(line).unwrap();
            assert_eq!(read, wanted, "{line}");
        }
        for line in [
            r#"{"t":"why","s":2,"is":"saved","v":0}"#,
            r#"{"t":"why","s":2,"is":"state","p":7,"name":"exp_avg_ä"}"#,
        ] {
            let wanted: Why<'_> = serde_json::from_str(line).unwrap();
            assert_eq!(why(line), Some(wanted), "{line}");
        }
        let line = r#"{"t":"free","s":[29,30]}"#;
        assert_eq!(free(line), serde_json::from_str(line).unwrap());
    }

    #[test]
    fn what_is_written_otherwise_goes_to_the_general_parser() {
        for line in [
            r#"{"t":"op","f": 1}"#,
            r#"{"t":"op","f":1,"f":2}"#,
            r#"{"t":"op","a":[]}"#,
            r#"{"t":"op","f":01}"#,
            r#"{"t":"op","f":1"#,
            r#"{"t":"op","f":1}}"#,
            r#"{"t":"op","f":1,"new":2}"#,
            r#"{"t":"op","f":1,"a":["=\""]}"#,
            r#"{"t":"op","f":1,"a":["none"]}"#,
            r#"{"t":"op","f":1,"a":[1,]}"#,
            r#"{"t":"op","f":1,"a":[{}]}"#,
            r#"{"t":"op","f":"x"}"#,
        ] {
            assert!(operation(line).is_none(), "{line}");
        }
        for line in [
            r#"{"t":"free","s":[-1]}"#,
            r#"{"t":"free","s":[1],"s":[2]}"#,
            r#"{"t":"why","s":2}"#,
            r#"{"t":"why","s":2,"is":"saved","is":"saved"}"#,
            r#"{"t":"why","s":2,"is":"held","name":null}"#,
            r#"{"t":"why","s":2,"is":"\u0020"}"#,
            r#"{"t":"mark","at":"step"}"#,
            "{}",
        ] {
            assert!(super::line(line).is_none(), "{line}");
        }
    }

    proptest! {
        /// Nothing is read otherwise than by the general parser.
        #[test]
        fn anything_that_is_read_is_read_as_by_the_general_parser(
            rest in "(,\"(f|a|k|o|n|b|v|mod|l|st)\":|\\[|\\]|,|\\{|\\}|[0-9]{1,21}|-|\\.5|e3|true|null|\"[#%@=~$a-z0-9:]{0,5}\"|:){0,14}",
        ) {
            let line = format!("{{\"t\":\"op\",\"f\":1{rest}}}");
            if let Some(read) = operation(&line) {
                let wanted: Op<'_> = serde_json::from_str(&line).expect("it is JSON of an operation");
                prop_assert_eq!(read, wanted);
            }
        }
    }
}
