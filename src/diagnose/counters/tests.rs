//! Tests of reading the allocator's counters.

use super::*;
use crate::Evidence;

const SUMMARY: &str = "\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 1                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 3         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  21964 MiB |  22016 MiB | 176121 MiB | 154157 MiB |
|       from large pool |  21900 MiB |  21950 MiB | 176000 MiB | 154100 MiB |
|       from small pool |     64 MiB |     66 MiB |    121 MiB |     57 MiB |
|---------------------------------------------------------------------------|
| Active memory         |  21964 MiB |  22016 MiB | 176121 MiB | 154157 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  31000 MiB |  31000 MiB |  31000 MiB |      0 B   |
|---------------------------------------------------------------------------|
| Non-releasable memory |   8024 MiB |   9000 MiB | 100000 MiB |  91976 MiB |
|---------------------------------------------------------------------------|
| Allocations           |     950    |    1001    |   25000    |   24050    |
|===========================================================================|
";

fn one(pieces: Vec<crate::Piece>) -> Counters {
    assert_eq!(pieces.len(), 1);
    match pieces.into_iter().next().map(|piece| piece.evidence) {
        Some(Evidence::Counters(counters)) => counters,
        other => panic!("{other:?}"),
    }
}

fn mib(amount: Option<Amount>) -> u64 {
    amount.expect("it stands there").bytes.get() >> 20
}

#[test]
fn a_summary_is_read() {
    let counters = one(find_summary(SUMMARY));
    assert_eq!(counters.device, Some(1));
    assert_eq!((counters.ooms, counters.retries), (Some(1), Some(3)));
    assert_eq!(
        (mib(counters.allocated.current), mib(counters.allocated.peak)),
        (21964, 22016)
    );
    assert_eq!(
        (mib(counters.reserved.current), mib(counters.unreleasable.peak)),
        (31000, 9000)
    );
}

#[test]
fn two_devices_are_two_tables() {
    assert_eq!(find_summary(&SUMMARY.repeat(2)).len(), 2);
    // The header is missing, as when the top scrolled away.
    let cut: String = SUMMARY.lines().skip(5).map(|line| format!("{line}\n")).collect();
    assert_eq!(mib(one(find_summary(&cut)).reserved.current), 31000);
}

#[test]
fn stats_are_read_however_they_are_written() {
    let json = r#"{"active_bytes.all.current": 5, "allocated_bytes.all.current": 2013018112, "allocated_bytes.all.peak": 2013018113, "num_alloc_retries": 2, "num_ooms": 0, "reserved_bytes.all.current": 2227175424}"#;
    let dict = json.replace('"', "'");
    let ordered = "OrderedDict([('allocated_bytes.all.current', 2013018112), ('allocated_bytes.all.peak', 2013018113), ('num_alloc_retries', 2), ('num_ooms', 0), ('reserved_bytes.all.current', 2227175424)])";
    for text in [json, &dict, ordered] {
        let counters = one(find_stats(text));
        assert_eq!(counters.allocated.peak.expect("a peak").bytes.get(), 2_013_018_113);
        assert_eq!(counters.reserved.current.expect("reserved").bytes.get(), 2_227_175_424);
        assert_eq!((counters.ooms, counters.retries), (Some(0), Some(2)));
    }
    assert_eq!(find_stats(&format!("{json}\n{dict}")).len(), 2);
    assert!(find_stats("allocated bytes: many").is_empty());
}
