//! Tests of the pickle reader.

use proptest::prelude::*;

use super::error::Fault;
use super::*;

fn fault(bytes: &[u8]) -> Option<Fault> {
    Pickle::read(bytes).err().map(|error| error.fault)
}

/// `pickle.dumps({'a': [1, -2, 70000, 2**60, 2**64-1], 'b': (None, True, 1.5), 'c': {}})` by protocol.
const SAMPLES: [&[u8]; 4] = [
    b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naI70000\naL1152921504606846976L\naL18446744073709551615L\nasVb\np3\n(NI01\nF1.5\ntp4\nsVc\np5\n(dp6\ns.",
    b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00eX\x01\x00\x00\x00bq\x03N\x88G?\xf8\x00\x00\x00\x00\x00\x00\x87q\x04X\x01\x00\x00\x00cq\x05}q\x06u.",
    b"\x80\x04\x95\x45\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00e\x8c\x01b\x94N\x88G?\xf8\x00\x00\x00\x00\x00\x00\x87\x94\x8c\x01c\x94}\x94u.",
    b"\x80\x05}(\x8c\x01a](K\x01J\xfe\xff\xff\xffJp\x11\x01\x00\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00e\x8c\x01bN\x88G?\xf8\x00\x00\x00\x00\x00\x00\x87\x8c\x01c}u.",
];

#[test]
fn every_protocol_gives_the_same_values() {
    for sample in SAMPLES {
        let pickle = Pickle::read(sample).expect("Python wrote it");
        let root = pickle.root();
        let numbers: Vec<_> = root
            .get("a")
            .and_then(Node::items)
            .expect("a list")
            .map(Node::as_u64)
            .collect();
        assert_eq!(numbers, [Some(1), None, Some(70_000), Some(1 << 60), Some(u64::MAX)]);
        let tuple: Vec<_> = root.get("b").and_then(Node::items).expect("a tuple").collect();
        assert_eq!(tuple.len(), 3);
        assert_eq!(tuple[2].as_f64(), Some(1.5));
        assert_eq!(root.get("c").and_then(Node::entries).expect("a dict").count(), 0);
        assert_eq!(pickle.len(), 5 + 3 + 2 * 3);
    }
}

#[test]
fn what_runs_code_is_refused_by_name() {
    let system = b"cos\nsystem\n(S'true'\ntR.";
    assert_eq!(fault(system), Some(Fault::Refused("GLOBAL")));
    assert_eq!(fault(b"\x80\x04N)R."), Some(Fault::Refused("REDUCE")));
    assert_eq!(
        fault(b"\x80\x04\x8c\x02os\x8c\x06system\x93."),
        Some(Fault::Refused("STACK_GLOBAL"))
    );
    assert_eq!(fault(b"\x80\x04}}b."), Some(Fault::Refused("BUILD")));
    let message = Pickle::read(system).err().map(|error| error.to_string());
    assert_eq!(
        message.as_deref(),
        Some("byte 0 is GLOBAL, which makes Python run code; only plain data is read")
    );
}

#[test]
fn what_is_cut_or_stacked_wrong_is_refused() {
    assert_eq!(fault(b""), Some(Fault::Cut));
    assert_eq!(fault(b"\x80\x04]"), Some(Fault::Cut));
    assert_eq!(fault(b"\x8c\x05abc"), Some(Fault::Cut));
    assert_eq!(fault(b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffabc"), Some(Fault::Cut));
    assert_eq!(fault(b"."), Some(Fault::Stack));
    assert_eq!(fault(b"a."), Some(Fault::Stack));
    assert_eq!(fault(b"NNa."), Some(Fault::Stack));
    assert_eq!(fault(b"}Ns."), Some(Fault::Stack));
    assert_eq!(fault(b"}(Nu."), Some(Fault::Stack));
    assert_eq!(fault(b"N(."), Some(Fault::Stack));
    assert_eq!(fault(b"e."), Some(Fault::Stack));
    assert_eq!(fault(b"\xfe"), Some(Fault::Unknown(0xfe)));
    assert_eq!(fault(b"Iten\n."), Some(Fault::Malformed));
    assert_eq!(fault(b"\x8a\x11aaaaaaaaaaaaaaaaa."), Some(Fault::Wide));
}

/// If the memo could have gaps, five bytes would cost gigabytes.
#[test]
fn the_memo_has_no_holes() {
    assert_eq!(fault(b"Nr\xff\xff\xff\xff."), Some(Fault::Memo));
    assert_eq!(fault(b"h\x00."), Some(Fault::Memo));
    assert_eq!(fault(b"Nq\x01h\x01."), None);
}

/// A list that contains itself, as `x = []; x.append(x)` pickles it.
#[test]
fn a_cycle_is_met_again_not_entered() {
    let pickle = Pickle::read(b"\x80\x04]\x94h\x00a.").expect("Python writes such");
    let inner = pickle
        .root()
        .items()
        .and_then(|mut items| items.next())
        .expect("itself");
    assert_eq!(inner.items().map(Iterator::count), Some(1));
}

/// A value nested a hundred thousand levels deep, and one equally wide.
#[test]
fn depth_costs_no_stack() {
    let mut deep = vec![b']'; 100_000];
    deep.extend(vec![b'a'; 99_999]);
    deep.push(b'.');
    assert_eq!(fault(&deep), None);
    let mut marks = vec![b'('; 100_000];
    marks.extend(vec![b't'; 100_000]);
    marks.push(b'.');
    assert_eq!(fault(&marks), None);
}

/// Opcodes that would run code are refused by name anywhere: in a list, after a memo entry, in every protocol.
#[test]
fn every_opcode_that_runs_code_is_refused_by_name() {
    let named: [(u8, &str); 16] = [
        (b'c', "GLOBAL"),
        (b'R', "REDUCE"),
        (b'b', "BUILD"),
        (b'i', "INST"),
        (b'o', "OBJ"),
        (b'P', "PERSID"),
        (b'Q', "BINPERSID"),
        (0x81, "NEWOBJ"),
        (0x92, "NEWOBJ_EX"),
        (0x93, "STACK_GLOBAL"),
        (0x82, "EXT1"),
        (0x83, "EXT2"),
        (0x84, "EXT4"),
        (0x96, "BYTEARRAY8"),
        (0x97, "NEXT_BUFFER"),
        (0x98, "READONLY_BUFFER"),
    ];
    for (code, name) in named {
        for before in [&b""[..], b"\x80\x02}q\x00(X\x01\x00\x00\x00a", b"\x80\x05](N)\x94h\x00"] {
            let bytes = [before, &[code], b"os\nsystem\n."].concat();
            assert_eq!(fault(&bytes), Some(Fault::Refused(name)), "{name}");
        }
    }
}

/// Ten lists, each listing the previous one ten times, expand to 10¹⁰ items from eighty bytes. They are stored as
/// handles, and a reader that counts its visits stops.
#[test]
fn what_refers_to_itself_again_and_again_stays_small() {
    let mut bytes = b"]\x94".to_vec();
    for level in 0..10u8 {
        bytes.push(b']');
        bytes.push(0x94);
        bytes.push(b'(');
        (0..10).for_each(|_| bytes.extend([b'h', level]));
        bytes.push(b'e');
    }
    bytes.push(b'.');
    let pickle = Pickle::read(&bytes).expect("plain data");
    assert_eq!(pickle.len(), 100);
    // A hundred thousand memo entries of one value take eight bytes each.
    let mut many = b"N".to_vec();
    many.extend(vec![0x94; 100_000]);
    many.extend(b"j\x9f\x86\x01\x00.");
    assert_eq!(fault(&many), None);
    many.truncate(many.len() - 6);
    many.extend(b"j\xa0\x86\x01\x00.");
    assert_eq!(fault(&many), Some(Fault::Memo));
}

/// Lengths that exceed the input are refused before any memory is reserved for them.
#[test]
fn a_length_is_no_promise() {
    for bytes in [
        &b"X\xff\xff\xff\xffa."[..],
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.",
        b"B\xff\xff\xff\x7fa.",
        b"\x8b\xff\xff\xff\x7fa.",
        b"T\xff\xff\xff\xffa.",
    ] {
        assert_eq!(fault(bytes), Some(Fault::Cut), "{bytes:?}");
    }
}

#[test]
fn of_equal_keys_the_last_holds() {
    let pickle = Pickle::read(b"}(\x8c\x01aK\x01\x8c\x01aK\x02u.").expect("plain data");
    assert_eq!(pickle.root().get("a").and_then(Node::as_u64), Some(2));
}

/// Dictionaries with equal keys share a layout; one that grows afterwards becomes an ordinary dictionary.
#[test]
fn records_are_dictionaries() {
    let two = b"](}\x94(\x8c\x01a\x94K\x01\x8c\x01b\x94K\x02u}(h\x01K\x03h\x02K\x04u}(h\x01K\x05u\x8c\x01cK\x06sh\x00\x8c\x01aK\x07se.";
    let pickle = Pickle::read(two).expect("plain data");
    let dicts: Vec<Node> = pickle.root().items().expect("a list").collect();
    assert_eq!(dicts.len(), 4);
    let get = |dict: Node, key: &str| dict.get(key).and_then(Node::as_u64);
    assert_eq!((get(dicts[1], "a"), get(dicts[1], "b")), (Some(3), Some(4)));
    assert!(dicts[1].layout().is_some() && dicts[1].at(1).and_then(Node::as_u64) == Some(4));
    // The third dictionary has grown: it has no layout any more, but all its keys.
    assert_eq!(dicts[2].layout(), None);
    assert_eq!((get(dicts[2], "a"), get(dicts[2], "c")), (Some(5), Some(6)));
    // The fourth is the first one again, with a key set anew.
    assert_eq!((get(dicts[0], "a"), get(dicts[3], "a")), (Some(7), Some(7)));
    assert_eq!(dicts[0].identity(), dicts[3].identity());
    assert_eq!(pickle.len(), 4 + 4 + 4 + 2 + 2 + 2);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(pickle) = Pickle::read(&bytes) {
            prop_assert!(pickle.len() <= bytes.len());
        }
    }

    /// Random valid opcodes reach deeper into the reader than random bytes.
    #[test]
    fn any_opcodes_are_read_or_refused(codes in prop::collection::vec(prop::sample::select(
        &b"(.012NKM]}tae)lsuhq\x85\x86\x87\x88\x89\x8a\x8c\x8f\x90\x91\x94\x00\x01\x02"[..]), 0..300)) {
        if let Ok(pickle) = Pickle::read(&codes) {
            let root = pickle.root();
            let shown = root.items().map_or(0, Iterator::count) + root.entries().map_or(0, Iterator::count);
            prop_assert!(shown <= codes.len());
        }
    }

    #[test]
    fn integers_of_every_width_come_back(value in any::<u64>(), shift in 0..64u32) {
        let value = value >> shift;
        let mut bytes = vec![0x8a, 9];
        bytes.extend(value.to_le_bytes());
        bytes.extend([0, b'.']);
        prop_assert_eq!(Pickle::read(&bytes).expect("a long").root().as_u64(), Some(value));
    }
}
