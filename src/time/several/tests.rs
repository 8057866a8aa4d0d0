//! Tests of the time of a step on several GPUs.

use super::super::communication::Link;
use super::super::{Asked, Costs, Expense, H200, Measured, Network, Rates, TimedRun};
use super::*;
use vramscope_engine::Case;
use vramscope_engine::tape::Gpu;

fn case(json: &str) -> (Model, Setup, Parallel) {
    let case = Case::from_json(json).expect(json).expect("a case");
    let parallel = case.parallel.expect("it names a strategy");
    (
        Model::from_case(&case).expect("it is in the catalogue"),
        case.setup,
        parallel,
    )
}

fn parallel_time(json: &str, bytes_per_s: f64) -> ParallelTime {
    let own = Measured::read(H200).expect("it comes with the program");
    let costs = Costs::new(Rates::REFERENCE, Some(&own.kernels), &own.pace);
    let link = Link {
        bytes_per_s,
        ..Link::nvlink(900e9)
    };
    let network = Network::new(link, None);
    let (model, setup, parallel) = case(json);
    estimate_parallel(&model, &setup, &parallel, Gpu::H200, (&costs, &network)).expect("it trains")
}

const NVLINK: f64 = 370e9;
const LLAMA: &str =
    r#"{"model": "llama3.2-1b", "batch": 2, "seq": 1024, "precision": "bf16", "optim": "adamw_fused", "#;

fn llama(strategy: &str) -> String {
    format!("{LLAMA} {strategy}}}")
}

#[test]
fn each_strategy_sends_what_its_formula_says() {
    // 1,235,814,400 parameters of 2 bytes. In a ring of two GPUs each all-reduce sends all of it, each gather or
    // scatter half.
    let all = 1_235_814_400.0 * 2.0;
    for (strategy, times) in [
        (r#""strategy": "ddp""#, 1.0),
        (r#""strategy": "zero1""#, 2.0),
        (r#""strategy": "fsdp""#, 1.5),
        (r#""strategy": "fsdp_no_reshard""#, 1.0),
    ] {
        let traffic = parallel_time(&llama(strategy), NVLINK).traffic;
        let sent = traffic.bytes / all;
        assert!((sent / times - 1.0).abs() < 0.01, "{strategy}: {sent}");
        assert!(traffic.calls > 10 && traffic.seconds > 0.0);
    }
}

#[test]
fn what_hooks_send_is_what_their_formula_says() {
    let all = 1_235_814_400.0 * 2.0;
    let table = f64::from(128_256 * 2_048) / 1_235_814_400.0;
    for (strategy, times) in [
        (r#""strategy": "deepspeed0""#, 1.0),
        // An all-reduce of gradients, and a gather of parameters.
        (r#""strategy": "deepspeed1", "zero": {"overlap_comm": true}"#, 1.5),
        (r#""strategy": "deepspeed2""#, 1.5),
        // The root keeps the table, which is the head too, from forward to backward.
        (r#""strategy": "fsdp1""#, 1.5 - 0.5 * table),
        (r#""strategy": "fsdp1_no_reshard""#, 1.0),
        (r#""strategy": "fsdp", "trainer": "transformers""#, 1.5 - 0.5 * table),
    ] {
        let traffic = parallel_time(&llama(strategy), NVLINK).traffic;
        let sent = traffic.bytes / all;
        assert!((sent / times - 1.0).abs() < 0.01, "{strategy}: {sent}");
    }
}

#[test]
fn stage_3_gathers_again_what_it_does_not_keep() {
    let sent = |zero: &str| {
        let strategy = format!(r#""strategy": "deepspeed3", "zero": {{{zero}}}"#);
        parallel_time(&llama(&strategy), NVLINK).traffic.bytes / (1_235_814_400.0 * 2.0)
    };
    let released = sent(r#""stage3_max_reuse_distance": 0"#);
    let kept = sent(r#""stage3_max_reuse_distance": 9000000000"#);
    // A gather and a reduce-scatter; and a second gather of what was released, which the table is not: it is the head too.
    assert!((1.25..1.5).contains(&released), "{released}");
    assert!(kept < released, "{kept}");
}

#[test]
fn a_reduction_beside_backward_is_hidden_where_the_gpu_decides() {
    let stage2 = |overlaps: bool| {
        let zero = format!(r#""strategy": "deepspeed2", "zero": {{"overlap_comm": {overlaps}}}"#);
        parallel_time(&llama(&zero).replace(r#""batch": 2"#, r#""batch": 16"#), 100e9)
    };
    let [hidden, exposed] = [true, false].map(stage2);
    assert!((hidden.traffic.bytes - exposed.traffic.bytes).abs() < 1.0);
    assert!(hidden.exposed < exposed.exposed, "{hidden:?} {exposed:?}");
}

#[test]
fn stage_2_reduces_in_each_micro_batch_and_stage_1_in_the_last() {
    let before = |stage: u64, bytes_per_s: f64| {
        let strategy = format!(r#""strategy": "deepspeed{stage}", "accum": 4"#);
        let time = parallel_time(&llama(&strategy), bytes_per_s);
        time.before.expect("there are some").without_update()
    };
    assert!(before(2, 10e9) > 1.5 * before(2, NVLINK));
    assert!((before(1, 10e9) / before(1, NVLINK) - 1.0).abs() < 1e-9);
}

#[test]
fn deepspeed_on_the_host_copies_gradients_there_and_parameters_back() {
    let of = |offload: &str| {
        let strategy = format!(r#""strategy": "deepspeed2", "offload": "{offload}""#);
        parallel_time(&llama(&strategy), NVLINK)
    };
    let (here, offloaded) = (
        parallel_time(&llama(r#""strategy": "deepspeed2""#), NVLINK),
        of("optimizer"),
    );
    // Half of the gradients in 4 bytes, half of the parameters in 2.
    let moved = offloaded.traffic.host_bytes / (1_235_814_400.0 / 2.0);
    assert!((5.9..6.1).contains(&moved), "{moved}");
    assert!(offloaded.last.total() > 5.0 * here.last.total());
}

#[test]
fn backward_hides_what_a_fast_link_takes_and_waits_for_a_slow_one() {
    let ddp = llama(r#""strategy": "ddp""#);
    let (fast, slow) = (parallel_time(&ddp, NVLINK), parallel_time(&ddp, 10e9));
    assert!(fast.exposed < 0.5 * fast.traffic.seconds, "{fast:?}");
    assert!(slow.exposed > 0.8 * slow.traffic.seconds, "{:?}", slow.traffic);
    let slower = slow.last.total() - fast.last.total();
    assert!((slower - (slow.exposed - fast.exposed)).abs() < 1e-9);
}

#[test]
fn one_bucket_hides_nothing() {
    let many = parallel_time(&llama(r#""strategy": "ddp", "bucket": 25"#), 100e9);
    let one = parallel_time(&llama(r#""strategy": "ddp", "bucket": 60000"#), 100e9);
    assert!(one.traffic.calls <= 2 && many.traffic.calls > 20);
    assert!(one.exposed > many.exposed, "{} {}", one.exposed, many.exposed);
}

#[test]
fn micro_batches_before_the_last_do_not_communicate() {
    let (_, setup, _) = case(&llama(r#""strategy": "ddp", "accum": 4"#));
    let four = parallel_time(&llama(r#""strategy": "ddp", "accum": 4"#), NVLINK);
    let quiet = four.before.as_ref().expect("there are some").without_update();
    assert!((four.step_seconds(&setup) - (3.0 * quiet + four.last.total())).abs() < 1e-12);
    assert!(quiet < four.last.without_update());
}

#[test]
fn an_update_by_the_host_takes_longer_than_the_step() {
    let here = parallel_time(&llama(r#""strategy": "fsdp""#), NVLINK);
    let offloaded = parallel_time(&llama(r#""strategy": "fsdp", "offload": true"#), NVLINK);
    // Shards are copied to the GPU twice, gradients back once.
    let shards = 1_235_814_400.0 * 2.0 / 2.0;
    let moved = offloaded.traffic.host_bytes / shards;
    assert!((2.9..3.1).contains(&moved), "{moved}");
    assert_eq!(here.traffic.host_bytes, 0.0);
    assert!(offloaded.last.total() > 5.0 * here.last.total());
}

#[test]
fn other_ways_are_compared_at_the_same_work() {
    let own = Measured::read(H200).expect("it comes with the program");
    let costs = Costs::new(Rates::REFERENCE, Some(&own.kernels), &own.pace);
    let (model, setup, parallel) = case(&llama(r#""strategy": "ddp", "world": 8"#));
    let recording = parallel_work(&model, &setup, &parallel, Gpu::H200).expect("it trains");
    let of = |link: Link| ways(&recording, &setup, &parallel, (&costs, &Network::new(link, None)));
    let fast = of(Link::nvlink(900e9));
    let names: Vec<&str> = fast.iter().map(|way| way.name).collect();
    for name in ["ddp", "zero1", "fsdp", "fsdp_no_reshard", "tensor", "pipeline"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(fast.is_sorted_by(|a, b| a.samples_per_s >= b.samples_per_s));
    let bytes = |name: &str| fast.iter().find(|way| way.name == name).map_or(0, |way| way.bytes_sent);
    // 2-byte gradients are sent unchanged; factors of rank 4 of matrices with thousands of rows are hundreds of times
    // smaller.
    assert_eq!(bytes("ddp_fp16"), bytes("ddp"));
    assert!(
        bytes("ddp_powersgd4") * 100 < bytes("ddp"),
        "{}",
        bytes("ddp_powersgd4")
    );
    let named = |ways: &[Way], name: &str| *ways.iter().find(|way| way.name == name).expect("it is there");
    // 16 blocks of 2 × 1024 × 2048 in bf16 are gathered and scattered four times, of which each GPU sends 7/8.
    let tensor = named(&fast, "tensor");
    let expected = 16.0 * 8.0 * 7.0 / 8.0 * (2 * 1024 * 2048 * 2) as f64;
    assert!((tensor.bytes_sent as f64 / expected - 1.0).abs() < 0.01, "{tensor:?}");
    // With one micro-batch seven of eight stages are idle.
    assert!((named(&fast, "pipeline").bubble - 7.0 / 8.0).abs() < 1e-12);
    // Communication inside every block suffers most from a slow interconnect.
    let slow = of(Link::network(10e9));
    let loss = |name| named(&slow, name).step_ms / named(&fast, name).step_ms;
    assert!(
        loss("tensor") > loss("pipeline"),
        "{} {}",
        loss("tensor"),
        loss("pipeline")
    );
}

#[test]
fn a_pipeline_counts_its_micro_batches_once() {
    let own = Measured::read(H200).expect("it comes with the program");
    let costs = Costs::new(Rates::REFERENCE, Some(&own.kernels), &own.pace);
    let without = |strategy: &str| {
        let (model, setup, parallel) = case(&llama(strategy).replace("llama3.2-1b", "tinyllama-1.1b"));
        let network = Network::new(Link::nvlink(900e9), None);
        let run = TimedRun::record(&model, &setup, Some(&parallel), Gpu::H200, network).expect("it trains");
        let asked = Asked {
            expense: Expense::default(),
            sources: ["", ""],
        };
        let (_, answer) = run.answer(&costs, asked);
        (answer.step_ms_without_host, answer.step_ms)
    };
    let (without_host, step) = without(r#""strategy": "pipeline", "accum": 4"#);
    assert!(without_host <= step * (1.0 + 1e-9), "{without_host} of {step}");
    // Each of two stages has half of the blocks, and each of two data-parallel GPUs all of them.
    let (whole, _) = without(r#""strategy": "ddp", "accum": 4"#);
    assert!(
        (0.3..0.8).contains(&(without_host / whole)),
        "{without_host} of {whole}"
    );
}
