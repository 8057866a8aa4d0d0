//! Runs the course's exercises on speed with the engine, for the values that `/course` shows beside the course's own.

use std::path::Path;

use serde_json::Value;
use vramscope_engine::device::Device;
use vramscope_engine::format::gib;
use vramscope_engine::simulate::simulate_parallel;
use vramscope_engine::{Case, Model};
use vramscope_time::communication::{Link, power_sgd_elements};
use vramscope_time::pipeline::{By, Pipeline, Stage};
use vramscope_time::{Asked, Costs, H200, Measured, Network, Rates, TimeAnswer, TimedRun};

/// Body of a table of the course, without its first column.
type Cells = Vec<Vec<String>>;

/// Peak memory of each GPU, and the breakdown of a step's time, on a card by its data sheet.
fn run(card: &str, case: &str) -> (String, f64, TimeAnswer<'static>) {
    let case = Case::from_json(case).expect(case).expect("a case");
    let model = Model::from_case(&case).expect("it is known");
    let parallel = case.parallel.expect("it names a strategy");
    let device = Device::by_name(card).expect("it is known");
    let own = Measured::read(H200).expect("it comes with the program");
    let costs = Costs::new(Rates::of(device).expect("its data sheet states them"), None, &own.pace);
    let network = Network::new(Link::of(device).expect("it has a link"), None);
    let gpu = device.gpu().expect("it is driven by CUDA");
    let report = simulate_parallel(&model, &case.setup, &parallel, gpu).expect("it is simulated");
    let run = TimedRun::record(&model, &case.setup, Some(&parallel), gpu, network).expect("it is simulated");
    let (_, answer) = run.answer(&costs, Asked::default());
    (gib(report.peak_allocated), report.peak_allocated.get() as f64, answer)
}

/// Exercise 11.2: a 7B model with fp32 moments on eight cards of 80 GB. ZeRO-2 corresponds to FSDP that keeps gathered
/// weights.
fn exercise_2() -> Cells {
    let of = |strategy: &str, batch: u64| {
        let case = format!(
            r#"{{"model": "vicuna-7b", "batch": {batch}, "seq": 512, "precision": "fp32", "mp": true,
                "optim": "adamw_fused", "strategy": "{strategy}", "world": 8}}"#
        );
        let (peak, _, time) = run("A100 80GB SXM", &case);
        let hidden = time.communication.expect("there are several");
        vec![
            peak,
            format!("{:.1}", time.samples_per_s),
            format!("{:.0} ms", hidden.total_ms),
            format!("{:.1} ms", hidden.exposed_ms),
        ]
    };
    vec![
        of("fsdp_no_reshard", 8),
        of("fsdp_no_reshard", 16),
        of("fsdp", 8),
        of("fsdp", 16),
    ]
}

/// Exercise 11.3: read 50, decode 30, augment 40, copy 20 ms.
fn exercise_3() -> Cells {
    let stage = |name, ms: f64, by| Stage {
        name,
        seconds: ms / 1e3,
        by,
    };
    let plain = vec![
        stage("read", 50.0, By::Worker),
        stage("decode", 30.0, By::Worker),
        stage("augment", 40.0, By::Worker),
        stage("copy", 20.0, By::Loop),
    ];
    let better = vec![
        stage("read", 50.0, By::Worker),
        stage("augment", 40.0, By::Worker),
        stage("copy", 20.0, By::Copy),
        stage("decode", 15.0, By::Loop),
    ];
    let of = |stages: &[Stage], workers| {
        let pipeline = Pipeline {
            stages: stages.to_vec(),
            workers,
            prefetch: 2,
            cores: 16,
            step: 0.0,
        };
        vec![
            format!("{:.1} ms", pipeline.flow().interval * 1e3),
            pipeline.best_workers(32).to_string(),
        ]
    };
    vec![of(&plain, 0), of(&plain, 4), of(&better, 4)]
}

/// Exercise 11.4: 13B parameters on eight A100, a global batch of 256 in micro-batches of 4.
fn exercise_4() -> Cells {
    let of = |accum: u64| {
        let case = format!(
            r#"{{"model": "vicuna-13b", "batch": 4, "seq": 512, "precision": "bf16", "optim": "adamw_fused",
                "strategy": "ddp", "world": 8, "accum": {accum}}}"#
        );
        let (_, _, time) = run("A100 80GB SXM", &case);
        let communication = time.communication.expect("there are several");
        vec![
            format!("{:.0} ms", communication.total_ms),
            format!("{:.0} ms", communication.total_ms / accum as f64),
            format!("{:.0} ms", communication.exposed_ms),
            format!("{:.1}", time.samples_per_s),
        ]
    };
    vec![of(1), of(8)]
}

/// 11.6: ViT-L with a 7B language model on four A100 of 40 GB, phase by phase.
fn exercise_6() -> Cells {
    let base = r#""model": "llava-1.5-7b", "seq": 1024, "images": 1, "world": 4, "ckpt": "full""#;
    let phases = [
        r#""strategy": "fsdp", "precision": "fp32", "attn": "eager", "batch": 1, "optim": "adamw_loop""#,
        r#""strategy": "fsdp", "precision": "bf16", "batch": 1, "optim": "adamw""#,
        r#""strategy": "fsdp", "precision": "bf16", "batch": 8, "optim": "adamw_fused""#,
        r#""strategy": "fsdp_no_reshard", "precision": "bf16", "batch": 8, "optim": "adamw_fused""#,
    ];
    phases
        .into_iter()
        .map(|phase| {
            let (peak, bytes, time) = run("A100 40GB SXM", &format!("{{{base}, {phase}}}"));
            assert!(bytes < 39.5 * f64::from(1 << 30), "{phase} does not fit");
            let first = format!("{:?}", time.bottlenecks[0].resource).to_lowercase();
            vec![
                format!("{:.1}", time.samples_per_s),
                peak,
                format!("{:.0}%", 100.0 * time.flops_utilisation),
                first,
            ]
        })
        .collect()
}

fn texts(language: &str) -> Value {
    let path = format!("../src/app/locales/{language}/course/11.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(path).expect("the course is there");
    serde_json::from_str(&text).expect("it is JSON")
}

#[test]
fn the_course_shows_what_the_engine_says() {
    let rows = [
        ("11.2", exercise_2(), 4),
        ("11.data", exercise_3(), 2),
        ("11.comm", exercise_4(), 4),
        // the last column is a word
        ("11.6", exercise_6(), 3),
    ];
    for language in ["en", "zh-CN", "zh-TW"] {
        let texts = texts(language);
        for (row, cells, numbers) in &rows {
            let shown = texts[row]["ran.rows"]
                .as_array()
                .unwrap_or_else(|| panic!("{row}: no table"));
            assert_eq!(shown.len(), cells.len() + 1, "{row}: {cells:?}");
            for (shown, cells) in shown.iter().skip(1).zip(cells) {
                let shown: Vec<&str> = shown
                    .as_array()
                    .expect("cells")
                    .iter()
                    .filter_map(Value::as_str)
                    .collect();
                assert_eq!(&shown[1..=*numbers], &cells[..*numbers], "{language} {row}: {cells:?}");
            }
        }
    }
}

#[test]
fn each_phase_of_exercise_6_is_faster_or_says_why_not() {
    let rates: Vec<f64> = exercise_6()
        .iter()
        .map(|cells| cells[0].parse().expect("a rate"))
        .collect();
    // The course expects a factor of 10; the last phase saves communication that was already overlapped.
    assert!(rates[0] < 2.5 && rates[1] > 5.0 && rates[2] > 10.0, "{rates:?}");
    assert!((rates[3] / rates[2] - 1.0).abs() < 0.05, "{rates:?}");
}

#[test]
fn rank_4_sends_640_times_less_of_a_large_matrix() {
    assert_eq!(5120 * 5120 / power_sgd_elements([5120, 5120], 4), 640);
}
