//! The page of the manual that shows every measured run beside its prediction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use vramscope_engine::format::{error as percent, gib, grouped};
use vramscope_engine::units::Bytes;
use vramscope_engine::{Case, Model, simulate};
use vramscope_tests::kept;
use vramscope_tests::ledger::{self, ALLOWED, Ledger, Published, Run, Source, root};

const PAGE: &str = "docs/ledger.md";

/// Runs that are listed, the worst first.
const LISTED: usize = 40;

/// Runs of a source.
struct Read {
    source: Source,
    runs: Vec<Run>,
}

fn all(sources: Vec<Source>) -> Vec<Read> {
    let read = |source: Source| Read {
        runs: ledger::read(&source.name),
        source,
    };
    sources.into_iter().map(read).collect()
}

/// Lines of a file of `tests/data`, each with the key that joins it.
fn lines(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("tests/data").join(path)).expect("a part of the repository");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

/// Highest of the steps, and reserved bytes.
fn highest(row: &Value) -> Option<(u64, u64)> {
    let steps = row["steps"].as_array()?.iter().filter_map(Value::as_u64);
    Some((steps.max()?, row["reserved"].as_u64()?))
}

/// Runs of tools by their own commands, which a dry run predicts.
fn of_tools() -> Vec<Run> {
    let recorded: BTreeMap<String, Value> = lines("dry_runs/recorded.jsonl")
        .into_iter()
        .map(|row| (row["case"].as_str().unwrap_or_default().to_owned(), row))
        .collect();
    let of = |row: Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let took = highest(&row)?;
        let predicted = recorded.get(&text("case"));
        let bytes = predicted.and_then(highest);
        let why = predicted
            .and_then(|row| row["error"].as_str())
            .unwrap_or("not recorded");
        Some(Run {
            run: format!(
                "{} {} {}: {}",
                text("tool"),
                text("version"),
                text("model"),
                text("kind")
            ),
            peak: (took.0, bytes.map(|(peak, _)| peak)),
            reserved: (took.1, bytes.map(|(_, reserved)| reserved)),
            refused: bytes.is_none().then(|| why.to_owned()),
        })
    };
    lines("dry_runs/measured.jsonl").into_iter().filter_map(of).collect()
}

/// Runs of Trainer and of TRL's trainers in scripts, which a recording predicts.
fn of_scripts() -> Vec<Run> {
    let pair = |row: &Value, key: &str, at: usize| row[key][at].as_u64();
    let of = |row: Value| {
        let (front, model) = (row["front"].as_str()?, row["model"].as_str()?);
        Some(Run {
            run: format!("{model} front={front} i={}", row["i"]),
            peak: (pair(&row, "peak", 1)?, pair(&row, "peak", 0)),
            reserved: (pair(&row, "reserved", 1)?, pair(&row, "reserved", 0)),
            refused: None,
        })
    };
    lines("fronts_recorded.jsonl").into_iter().filter_map(of).collect()
}

#[test]
fn the_kept_table_of_dry_runs_in_the_ledger_is_todays() {
    ledger::hold("dry_runs", of_tools());
    ledger::hold("fronts_recorded", of_scripts());
}

/// A run that is off by more than the limit has to be a known failure, and one that is known to fail has to: whoever mends
/// its cause takes it out of the list.
#[test]
fn runs_fail_where_it_is_known_that_they_do() {
    let ledger = Ledger::read();
    let known: BTreeSet<(&str, &str)> = ledger
        .known_failure
        .iter()
        .map(|one| (one.source.as_str(), one.run.as_str()))
        .collect();
    assert_eq!(known.len(), ledger.known_failure.len(), "a failure is listed twice");
    let reads = all(ledger.source);
    let wrong = verdicts(&reads, &known);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with a list of known failures.
fn verdicts(reads: &[Read], known: &BTreeSet<(&str, &str)>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut met = BTreeSet::new();
    for read in reads {
        let name = read.source.name.as_str();
        for run in &read.runs {
            let Some(error) = run.error() else { continue };
            let is_known = known.contains(&(name, run.run.as_str()));
            match (error.abs() > ALLOWED, is_known) {
                (true, false) => wrong.push(format!(
                    "{name}: {} is {} off and no known_failure",
                    run.run,
                    percent(error)
                )),
                (false, true) => wrong.push(format!(
                    "{name}: {} passes, {}: take its known_failure out",
                    run.run,
                    percent(error)
                )),
                _ => {}
            }
            if is_known {
                met.insert((name, run.run.as_str()));
            }
        }
    }
    wrong.extend(
        known
            .difference(&met)
            .map(|(source, run)| format!("{source}: there is no run {run}")),
    );
    wrong
}

#[test]
fn a_known_failure_that_starts_to_pass_fails_the_build() {
    let word = || "s".to_owned();
    let source = Source {
        name: word(),
        title: word(),
        route: word(),
        tool: word(),
        strategy: word(),
        versions: word(),
        card: word(),
        from: word(),
        table: word(),
    };
    let run = |name: &str, predicted: u64| Run {
        run: name.to_owned(),
        peak: (1000, Some(predicted)),
        reserved: (0, None),
        refused: None,
    };
    let reads = [Read {
        source,
        runs: vec![run("good", 1000), run("bad", 1100), run("mended", 1001)],
    }];
    let of = |known: &[&'static str]| verdicts(&reads, &known.iter().map(|run| ("s", *run)).collect()).len();
    assert_eq!(of(&["bad"]), 0);
    assert_eq!(of(&[]), 1, "a failure that nobody knows");
    assert_eq!(of(&["bad", "mended"]), 1, "a failure that passes");
    assert_eq!(of(&["bad", "gone"]), 1, "a failure of no run");
}

/// Every table of measured against predicted bytes is in the ledger, or named with what it holds instead.
#[test]
fn no_table_is_left_out() {
    let ledger = Ledger::read();
    let data = root().join("tests/data");
    let named: BTreeSet<&str> = ledger.source.iter().map(|source| source.table.as_str()).collect();
    let elsewhere: BTreeSet<&str> = ledger.elsewhere.iter().map(|one| one.table.as_str()).collect();
    assert!(named.is_disjoint(&elsewhere));
    let mut tables = BTreeSet::new();
    for entry in std::fs::read_dir(&data).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "README.md" && Path::new(&name).extension().is_some_and(|end| end == "md") {
            tables.insert(name);
        }
    }
    let all: BTreeSet<String> = named.union(&elsewhere).map(|name| (*name).to_owned()).collect();
    let missing: Vec<_> = tables.difference(&all).collect();
    assert!(
        missing.is_empty(),
        "tables that tests/data/ledger/ledger.toml does not name: {missing:?}"
    );
    for source in &ledger.source {
        assert!(data.join(&source.from).exists(), "{} is not in tests/data", source.from);
        assert!(
            data.join(&source.table).exists(),
            "{} is not in tests/data",
            source.table
        );
    }
}

/// Made of the kept files, so after them: `cargo xtask table` runs it behind the others.
#[test]
fn the_page_of_the_ledger_is_todays() {
    let ledger = Ledger::read();
    let (failures, published) = (&ledger.known_failure, &ledger.published);
    let elsewhere: Vec<(&str, &str)> = ledger
        .elsewhere
        .iter()
        .map(|one| (one.table.as_str(), one.holds.as_str()))
        .collect();
    let reads = all(ledger.source);
    let mut out = String::from(HEAD);
    out += &distribution(&reads);
    out += &sources(&reads);
    out += &worst(&reads);
    out += &models(&reads);
    out += "## Known failures\n\nRuns whose peak is more than 1% off. A test fails when another run joins them, and when one of \
            them starts to pass.\n\n| source | run | cause |\n| --- | --- | --- |\n";
    for one in failures {
        let _ = writeln!(out, "| {} | {} | {} |", one.source, cell(&one.run), one.cause);
    }
    out += &of_others(published);
    out += "\n## Other tables\n\n| table | what it holds |\n| --- | --- |\n";
    for (table, holds) in elsewhere {
        let _ = writeln!(out, "| [{table}](../tests/data/{table}) | {holds} |");
    }
    out += ADD;
    kept::hold(PAGE, &out);
}

const HEAD: &str = "\
# The ledger

How far off is it? Every training step that was measured for this project stands here beside its prediction, the bad ones
included. The engine never saw a measurement before it predicted; a test predicts every run again and fails if a figure of this
page is not today's. Errors are (predicted − measured) ÷ measured of the highest bytes in tensors of a steady step.

Each source's runs, one a line with measured and predicted bytes, are in [tests/data/ledger](../tests/data/ledger); what was
measured, and by which program, in [tests/data](../tests/data/README.md). `cargo xtask table` makes this page.

";

const ADD: &str = "
## Add a run of your own

1. In a training of your own, `vramscope.Watch` (or `vramscope.watching` for Trainer) writes a file with the model's configuration,
   the setup and each step's bytes ([the command line](command-line.md#watch)). `vramscope watch FILE --once` shows it beside the
   prediction. `vramscope watch FILE --share RUN.json` writes what others may have of it, and shows all of that: the model's numbers,
   the setup, bytes and times; no name, no path, no data. Nothing is sent. `vramscope schema run` is its schema.
2. Open a pull request that adds that file to `tests/data/shared_runs`, or an issue with the form *A number is wrong*, even if it is
   right. Many cases at once: `tests/data/truth/measure.py` measures them for a file of `tests/data/truth`.
3. `cargo xtask table` writes the ledger anew. A run that is more than 1% off joins the known failures with its cause, or with
   the word that it is not known.

A measured card, not a run, goes to a team's server: [`vramscope upload`](server.md).
";

fn errors<'a>(reads: impl IntoIterator<Item = &'a Read>) -> Vec<f64> {
    let runs = reads.into_iter().flat_map(|read| &read.runs);
    let mut errors: Vec<f64> = runs.filter_map(Run::error).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

fn of_route<'a>(reads: &'a [Read], route: &'a str) -> impl Iterator<Item = &'a Read> {
    reads.iter().filter(move |read| read.source.route == route)
}

/// How many runs are how far off, by route.
fn distribution(reads: &[Read]) -> String {
    let mut out = String::from(
        "| route | runs predicted | to the byte | within 0.01% | within 0.1% | within 1% | beyond | refused |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
    );
    for route in ["engine", "dry run"] {
        let errors = errors(of_route(reads, route));
        let within = |limit: f64| grouped(errors.iter().filter(|error| **error <= limit).count() as u64);
        let beyond = errors.iter().filter(|error| **error > ALLOWED).count();
        let runs = of_route(reads, route).flat_map(|read| &read.runs);
        let refused = runs.filter(|run| run.peak.1.is_none()).count();
        let _ = writeln!(
            out,
            "| {route} | {} | {} | {} | {} | {} | {beyond} | {refused} |",
            grouped(errors.len() as u64),
            within(0.0),
            within(0.0001),
            within(0.001),
            within(ALLOWED)
        );
    }
    out + "\n"
}

fn sources(reads: &[Read]) -> String {
    let mut out = String::from(
        "## By source\n\n| runs | route | tool | GPUs | versions | card | n | median | nine in ten | worst | table |\n\
         | --- | --- | --- | --- | --- | --- | --: | --: | --: | --: | --- |\n",
    );
    for read in reads {
        let (source, errors) = (&read.source, errors([read]));
        let at = |share: usize| match errors.is_empty() {
            true => String::new(),
            false => percent(errors[(errors.len() * share).div_ceil(100).max(1) - 1]).replace('+', ""),
        };
        let _ = writeln!(
            out,
            "| [{}](../tests/data/ledger/{}.tsv) | {} | {} | {} | {} | {} | {} | {} | {} | {} | [table](../tests/data/{}) |",
            source.title,
            source.name,
            source.route,
            source.tool,
            source.strategy,
            source.versions,
            source.card,
            grouped(errors.len() as u64),
            at(50),
            at(90),
            at(100),
            source.table
        );
    }
    out + "\n"
}

fn worst(reads: &[Read]) -> String {
    let mut runs: Vec<(f64, &Read, &Run)> = Vec::new();
    for read in reads {
        runs.extend(read.runs.iter().filter_map(|run| Some((run.error()?, read, run))));
    }
    runs.sort_by(|(a, ..), (b, ..)| b.abs().total_cmp(&a.abs()));
    let mut out = format!(
        "## Worst first\n\nThe {LISTED} worst of {}.\n\n| error | run | source | measured | predicted | reserved |\n\
         | --: | --- | --- | --: | --: | --: |\n",
        grouped(runs.len() as u64)
    );
    for (error, read, run) in runs.into_iter().take(LISTED) {
        let (measured, predicted) = run.peak;
        let bytes = |bytes: u64| gib(Bytes::new(bytes));
        let reserved = run.reserved_error().map(percent).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {reserved} |",
            percent(error),
            cell(&run.run),
            read.source.name,
            bytes(measured),
            bytes(predicted.unwrap_or_default())
        );
    }
    out + "\n"
}

/// Each model or family by the worst of its runs; the engine's alone, whose runs begin with their names.
fn models(reads: &[Read]) -> String {
    let mut by_model: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in of_route(reads, "engine").flat_map(|read| &read.runs) {
        if let (Some(error), Some(model)) = (run.error(), run.run.split(' ').next()) {
            by_model.entry(model).or_default().push(error.abs());
        }
    }
    let mut rows: Vec<(&str, Vec<f64>)> = by_model.into_iter().collect();
    rows.iter_mut().for_each(|(_, errors)| errors.sort_by(f64::total_cmp));
    rows.sort_by(|(_, a), (_, b)| {
        b.last()
            .zip(a.last())
            .map_or(std::cmp::Ordering::Equal, |(b, a)| b.total_cmp(a))
    });
    let mut out = String::from(
        "## By model or family\n\n| model, family | runs | to the byte | median | worst |\n| --- | --: | --: | --: | --: |\n",
    );
    for (model, errors) in rows {
        let exact = errors.iter().filter(|error| **error == 0.0).count();
        let shown = |error: f64| percent(error).replace('+', "");
        let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
        let _ = writeln!(
            out,
            "| {model} | {} | {exact} | {} | {} |",
            errors.len(),
            shown(median),
            shown(worst)
        );
    }
    out + "\n"
}

/// What others publish, beside what the engine says of the case that comes nearest.
fn of_others(published: &[Published]) -> String {
    let mut out = String::from(
        "\n## What others publish\n\nRules of thumb seldom say of which length, batch or optimizer they speak, so the last column \
         says what was taken for it. GB are 10⁹ bytes; ours are the highest reserved bytes and what lies outside PyTorch's \
         allocator.\n\n| by | said | GB said | GB simulated | of |\n| --- | --- | --: | --: | --- |\n",
    );
    for one in published {
        let case = Case::from_json(&one.case).expect("a case").expect("of a setup");
        let model = Model::from_case(&case).expect("a model");
        let report = simulate(&model, &case.setup).expect("it is simulated");
        let outside = vramscope_engine::report::outside::total(
            vramscope_engine::device::Device::by_name(vramscope_engine::device::REFERENCE).expect("a card"),
        );
        let bytes = report.peak_reserved + outside;
        let _ = writeln!(
            out,
            "| [{}]({}) | {} | {} | {:.1} | {}: `{}` |",
            one.by,
            one.source,
            one.said,
            one.gb,
            bytes.get() as f64 / 1e9,
            one.taken,
            one.case
        );
    }
    out
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
