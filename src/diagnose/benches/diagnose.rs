//! Benchmarks the way from a text to its findings: a log of one megabyte with a crash at its end, and a short paste.

#![allow(clippy::disallowed_methods, reason = "runs natively only")]
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use vramscope_diagnose::{Context, Excerpt, diagnose, read, read_parts};

/// The allocator that the command line uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A log until the first step: command, versions, arguments, loading.
const HEAD: &str = "\
$ MAX_PIXELS=1003520 NPROC_PER_NODE=2 swift sft \\
    --model Qwen/Qwen2.5-VL-7B-Instruct \\
    --train_type lora \\
    --per_device_train_batch_size 2 \\
    --max_length 8192 \\
    --attn_impl flash_attn
[INFO:swift] ms-swift==3.4.1, transformers==4.51.3, torch==2.6.0+cu124
Loading checkpoint shards: 100%|##########| 5/5 [00:07<00:00,  1.55s/it]
";

/// Its end: the traceback of a rank and the error.
const CRASH: &str = "\
[rank1]: Traceback (most recent call last):
[rank1]:   File \"/env/swift/cli/sft.py\", line 10, in <module>
[rank1]:     sft_main()
[rank1]:   File \"/env/transformers/trainer.py\", line 2560, in _inner_training_loop
[rank1]:     tr_loss_step = self.training_step(model, inputs, num_items_in_batch)
[rank1]:   File \"/env/transformers/models/qwen2_5_vl/modeling_qwen2_5_vl.py\", line 1784, in forward
[rank1]:     loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size)
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 1 has a total capacity of 79.15 GiB \
of which 3.11 GiB is free. Including non-PyTorch memory, this process has 76.03 GiB memory in use. Of the allocated memory \
72.40 GiB is allocated by PyTorch, and 2.50 GiB is reserved by PyTorch but unallocated.
";

/// A log as trainers write it: a progress bar that overwrites itself, the metrics of a step, and warnings.
fn log(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 4096);
    text.push_str(HEAD);
    let mut step = 0_u64;
    while text.len() < bytes {
        step += 1;
        let wave = step * 7919 % 100;
        for part in 0..3 {
            let bar = "#".repeat((step / 100 % 40) as usize);
            write!(
                text,
                "\rTrain:  {part}%|{bar:<40}| {step}/20000 [{step}:0{part}<9:59:59,  2.{wave:02}s/it]"
            )
            .expect("written");
        }
        writeln!(
            text,
            "\n{{'loss': 0.{wave:02}13, 'grad_norm': 1.{wave:02}, 'learning_rate': 9.9{wave:02}e-06, 'token_acc': 0.8{wave:02}, \
             'epoch': 0.{step}, 'global_step/max_steps': '{step}/20000', 'memory(GiB)': 61.{wave:02}, \
             'train_speed(iter/s)': 0.4{wave:02}}}"
        )
        .expect("written");
        if step.is_multiple_of(40) {
            text.push_str(
                "/env/torch/utils/checkpoint.py:87: UserWarning: None of the inputs have requires_grad=True.\n",
            );
            text.push_str("[INFO:swift] Saving model checkpoint to /out/checkpoint-40\n");
        }
    }
    text.push_str(CRASH);
    text
}

fn benches(c: &mut Criterion) {
    let (long, short) = (log(1 << 20), format!("{HEAD}{CRASH}"));
    let context = Context::default();
    let mut group = c.benchmark_group("diagnose");
    group.sample_size(20);
    for (name, text) in [("a log of 1 MB", &long), ("a paste", &short)] {
        group.bench_function(name, |b| {
            b.iter(|| black_box(diagnose(&read(text.as_bytes()).expect("a text"), &context)));
        });
    }
    group.bench_function("a log of 1 MB, read only", |b| {
        b.iter(|| black_box(read(long.as_bytes()).expect("a text")));
    });
    group.bench_function("a log of 1 MB, as a stream", |b| {
        b.iter(|| {
            let mut excerpt = Excerpt::default();
            long.as_bytes().chunks(1 << 16).for_each(|piece| excerpt.feed(piece));
            black_box(read_parts(&excerpt.finish()).expect("a text"))
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
