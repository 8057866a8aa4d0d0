//! Steps with weights in 4 bits and with optimizers of bitsandbytes, drawn at random over 22 families, against measurements on an
//! H200.

use vramscope_tests::{kept, ledger};

use super::drawn::Compared;

const FILE: &str = "data/truth/bits.jsonl.gz";
const TEXT: &str = "Configurations of 22 families drawn by chance, with weights in 4 bits (`from_pretrained`, then peft's \
    `prepare_model_for_kbit_training`) or with bitsandbytes' AdamW and Lion in 8 bits and in 32, paged or not, in a loop, under \
    transformers' Trainer and under TRL's, each measured in a process of its own on an H200 (PyTorch 2.11, transformers 5.17, peft 0.21, \
    bitsandbytes 0.50, TRL 1.16; `tests/data/truth/configurations.py`). Peaks lie below a gigabyte or two, where what the allocator leaves \
    behind a tensor, a MiB at most, is seen.";
const TABLE: &str = "tests/data/bits_vs_predicted.md";

#[test]
fn steps_of_bitsandbytes_are_predicted() {
    let rows = Compared::all(FILE);
    for row in &rows {
        let report = row.report.as_ref().expect("nothing is refused");
        assert_eq!(Some(report.trainable), row.row.trainable, "{}", row.row.case);
    }
    let peaks: Vec<f64> = rows.iter().filter_map(|row| Some(row.errors()?[0].abs())).collect();
    let within = |limit: f64| peaks.iter().filter(|error| **error <= limit).count();
    let [all, tenth, third, whole] = [peaks.len(), within(0.001), within(0.003), within(0.02)];
    assert!(tenth * 5 >= all * 4, "{tenth} of {all} within 0.1%");
    assert!(third * 20 >= all * 19, "{third} of {all} within 0.3%");
    assert_eq!(whole, all, "within 2%, which is 2 MiB of the smallest");
}

#[test]
fn the_kept_table_of_bits_is_todays() {
    let rows = Compared::all(FILE);
    kept::hold(
        TABLE,
        &Compared::table("Weights in 4 bits and optimizers in 8", TEXT, &rows),
    );
    ledger::hold("bits", rows.iter().map(Compared::run));
}
