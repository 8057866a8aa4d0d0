//! The opcodes, named as `pickletools` names them.

macro_rules! opcodes {
    ($($name:ident = $code:literal),+ $(,)?) => {
        $(pub const $name: u8 = $code;)+
    };
}

opcodes! {
    MARK = b'(', STOP = b'.', POP = b'0', POP_MARK = b'1', DUP = b'2',
    FLOAT = b'F', INT = b'I', BININT = b'J', BININT1 = b'K', LONG = b'L', BININT2 = b'M', NONE = b'N',
    STRING = b'S', BINSTRING = b'T', SHORT_BINSTRING = b'U', UNICODE = b'V', BINUNICODE = b'X',
    BINBYTES = b'B', SHORT_BINBYTES = b'C', BINFLOAT = b'G',
    APPEND = b'a', DICT = b'd', EMPTY_DICT = b'}', APPENDS = b'e', LIST = b'l', EMPTY_LIST = b']',
    SETITEM = b's', SETITEMS = b'u', TUPLE = b't', EMPTY_TUPLE = b')',
    GET = b'g', BINGET = b'h', LONG_BINGET = b'j', PUT = b'p', BINPUT = b'q', LONG_BINPUT = b'r',
    PROTO = 0x80, TUPLE1 = 0x85, TUPLE2 = 0x86, TUPLE3 = 0x87, NEWTRUE = 0x88, NEWFALSE = 0x89,
    LONG1 = 0x8a, LONG4 = 0x8b, SHORT_BINUNICODE = 0x8c, BINUNICODE8 = 0x8d, BINBYTES8 = 0x8e,
    EMPTY_SET = 0x8f, ADDITEMS = 0x90, FROZENSET = 0x91, MEMOIZE = 0x94, FRAME = 0x95,
}

/// The name of an opcode that is never executed: it imports, calls, or reads data outside the input.
pub const fn refused(code: u8) -> Option<&'static str> {
    Some(match code {
        b'c' => "GLOBAL",
        b'R' => "REDUCE",
        b'b' => "BUILD",
        b'i' => "INST",
        b'o' => "OBJ",
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        0x81 => "NEWOBJ",
        0x92 => "NEWOBJ_EX",
        0x93 => "STACK_GLOBAL",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        0x96 => "BYTEARRAY8",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return None,
    })
}
