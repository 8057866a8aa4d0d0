//! Holds the kernels of `bench` that come with the program against the record that they are taken from.

use vramscope_benchmark::Record;
use vramscope_tests::kept;
use vramscope_time::CardKernels;

/// What `bench` measured on the card whose PyTorch kernels come with the program.
#[test]
fn bench_on_an_h200_is_what_its_record_says() {
    let record = Record::read(include_str!("../../data/records/h200.json")).expect("a record");
    let text = CardKernels::text(
        "",
        &Record {
            host: None,
            date: None,
            ..record
        },
    )
    .expect("it has kernels");
    kept::hold("src/time/measured/bench_h200.json", &text);
}
