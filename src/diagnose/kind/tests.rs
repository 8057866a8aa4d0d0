//! Every kind is whole, and says of its examples what it has to. The examples are the corpus: small inputs written for this
//! project after public reports.

use proptest::prelude::*;
use regex::Regex;
use vramscope_phrases::LANGUAGES;

use super::*;
use crate::finding::words::{Phrases, evidence, step, title};
use crate::finding::{Context, Finding, diagnose};
use crate::read;
use crate::sign::compile;

/// What a file says of its kind beside what programs carry.
#[derive(Debug, Deserialize)]
struct Note {
    /// Where the facts come from: issues, lines of source, documentation.
    sources: Vec<String>,
    /// Small inputs with what has to be said of them.
    example: Vec<Example>,
}

/// A small input and what has to be said of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The text that someone pastes.
    text: String,
    /// Regular expressions that the findings have to match; the kind's own name has to be among the first three findings.
    #[serde(default)]
    must_say: Vec<String>,
    /// Regular expressions that no finding may match.
    #[serde(default)]
    must_not_say: Vec<String>,
    /// Place that the kind has to have among the findings at most, from 1.
    #[serde(default = "third")]
    within: usize,
    /// Kinds that must not be found.
    #[serde(default)]
    must_not_find: Vec<String>,
}

const fn third() -> usize {
    3
}

static NOTES: LazyLock<BTreeMap<String, Note>> =
    LazyLock::new(|| serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/notes.json"))).expect("whole"));

/// Findings of a text, the words of each in English.
fn findings(text: &str) -> Vec<(Finding, String)> {
    let english = Phrases::english();
    let pieces = read(text.as_bytes()).expect("a text");
    let worded = |finding: Finding| {
        let mut said = vec![title(&finding.cause, finding.confidence)];
        said.extend(evidence(&finding.cause));
        said.extend(finding.advice.iter().map(|(_, said)| said.clone()));
        said.extend(finding.steps.iter().map(|action| step(*action)));
        let words: Vec<String> = said.iter().map(|said| english.text_of(said)).collect();
        let words = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        (finding, words)
    };
    diagnose(&pieces, &Context::default()).into_iter().map(worded).collect()
}

fn examples() -> impl Iterator<Item = (&'static str, &'static Example)> {
    NOTES
        .iter()
        .flat_map(|(name, note)| note.example.iter().map(move |example| (name.as_str(), example)))
}

#[test]
fn every_kind_is_whole() {
    let codes = [
        "host-memory",
        "outside-the-cache",
        "other-processes",
        "site",
        "limit",
        "no-numbers",
        "attention-matrix",
        "logits",
        "out-of-capacity",
        "nearly-full",
    ];
    for (name, kind) in all() {
        assert!(!NOTES[name].sources.is_empty(), "{name} has no source");
        for pattern in &kind.sign {
            assert!(
                pattern.anchors.iter().all(|anchor| anchor.len() > 1),
                "{name}: {:?}",
                pattern.anchors
            );
            if let Some(regex) = &pattern.regex {
                let regex = compile(regex).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(!regex.is_match(""), "{name}: matches nothing at all");
            }
        }
        for explained in &kind.explains {
            assert!(
                all().contains_key(explained) || codes.contains(&explained.as_str()),
                "{name} explains {explained}"
            );
        }
        if kind.words.is_empty() {
            continue;
        }
        assert!(!kind.row.is_empty(), "{name} has no row of the course");
        assert!(
            !NOTES[name].example.is_empty() || kind.is_computed,
            "{name} has no example"
        );
        let english = &kind.words["en"];
        for language in LANGUAGES {
            let other = kind
                .words
                .get(language.tag)
                .unwrap_or_else(|| panic!("{name} lacks {}", language.tag));
            assert_eq!(
                english.lines().count(),
                other.lines().count(),
                "{name} in {}",
                language.tag
            );
            for ((key, line), (_, same)) in english.lines().zip(other.lines()) {
                assert_eq!(line.gaps, same.gaps, "{name}.{key} in {}", language.tag);
                assert_eq!(line.conditions, same.conditions, "{name}.{key} in {}", language.tag);
                assert_eq!(line.action, same.action, "{name}.{key} in {}", language.tag);
            }
        }
    }
}

/// Returns true if what readers see begins like a list of conditions or the name of an action: one was written twice, or they
/// stand in another order.
fn has_prefix(phrase: &str) -> bool {
    let list = |rest: &str| Some(rest.split_once("] ")?.0.to_owned());
    let is_list = phrase.strip_prefix('[').and_then(list).is_some_and(|list| {
        let mut conditions = list.split(',').map(|one| Condition::parse(one.trim()));
        conditions.all(|condition| condition.is_ok())
    });
    is_list || phrase.starts_with('<') && phrase.contains("> ")
}

#[test]
fn no_condition_is_shown_to_readers() {
    for (name, kind) in all() {
        for (tag, texts) in &kind.words {
            for (key, line) in texts.lines() {
                assert!(!has_prefix(&line.phrase), "{name}.{key} in {tag}: {}", line.phrase);
            }
        }
    }
}

#[test]
fn every_example_is_understood() {
    let mut wrong = Vec::new();
    for (name, example) in examples() {
        let found = findings(&example.text);
        let codes: Vec<&str> = found.iter().map(|(finding, _)| finding.cause.code()).collect();
        let all: Vec<&str> = found.iter().map(|(_, words)| words.as_str()).collect();
        let all = all.join(" ");
        let matches = |pattern: &String| Regex::new(pattern).expect("an expression").is_match(&all);
        let place = codes.iter().position(|code| *code == name);
        let mut faults = Vec::new();
        if place.is_none_or(|place| place >= example.within) && !name.is_empty() {
            faults.push(format!("is not among the first {}", example.within));
        }
        faults.extend(
            example
                .must_say
                .iter()
                .filter(|pattern| !matches(pattern))
                .map(|pattern| format!("does not say {pattern}")),
        );
        faults.extend(
            example
                .must_not_say
                .iter()
                .filter(|pattern| matches(pattern))
                .map(|pattern| format!("says {pattern}")),
        );
        faults.extend(
            example
                .must_not_find
                .iter()
                .filter(|kind| codes.contains(&kind.as_str()))
                .map(|kind| format!("finds {kind}")),
        );
        let causes = found
            .iter()
            .filter(|(finding, _)| finding.confidence == Confidence::Cause)
            .count();
        if causes > 1 {
            faults.push(format!("{causes} causes"));
        }
        if !faults.is_empty() {
            wrong.push(format!("{name}: {faults:?}\n{}\n  found {codes:?}", example.text));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Lines that healthy runs print, and those that merely sound like an error, give no finding.
const HEALTHY: &str = "\
Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file
node1:22:80 [0] NCCL INFO NET/Plugin : dlerror=/usr/lib/libnccl-net.so: undefined symbol: ncclNetPlugin_v6
[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign).
Detected kernel version 5.4.0, which is below the recommended minimum; this can cause the process to hang. Upgrade it.
[rank0]:[W ProcessGroupNCCL.cpp:4115] devices of this process are unknown. This can potentially cause a hang if it is wrong.
/v/torch/utils/checkpoint.py:91: UserWarning: None of the inputs have requires_grad=True. Gradients will be None
FutureWarning: You are using `torch.load` with `weights_only=False`; we recommend you start setting `weights_only=True`
[W reducer.cpp:1346] Warning: find_unused_parameters=True was specified, but did not find any unused parameters.
[loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
A matching Triton is not available. Error caught was: No module named 'triton'
torchrun --nproc_per_node 8 train.py --ddp_timeout 180000000
{'loss': 1.2, 'grad_norm': 0.9, 'learning_rate': 1e-05, 'epoch': 0.1}
";

#[test]
fn what_healthy_runs_print_is_no_cause() {
    let found = findings(HEALTHY);
    let blamed: Vec<_> = found
        .iter()
        .filter(|(finding, _)| finding.confidence <= Confidence::Likely)
        .map(|(finding, _)| finding.cause.code())
        .collect();
    assert!(blamed.is_empty(), "{blamed:?}");
}

#[test]
fn the_corpus_is_large_enough() {
    let chinese = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let (all, chinese) = (
        examples().count(),
        examples().filter(|(_, example)| chinese(&example.text)).count(),
    );
    assert!(all >= 120 && chinese >= 24, "{all} examples, {chinese} of them Chinese");
}

/// Returns true if every part of a quotation between masks is in the text.
fn is_in(quote: &str, text: &str) -> bool {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = squeeze(text);
    quote
        .trim_end_matches('…')
        .split("***")
        .all(|part| text.contains(&squeeze(part)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Evidence of two crashes, cut and mixed line by line: nothing panics, and nothing is quoted that is not there.
    #[test]
    fn mixed_crashes_are_quoted_as_they_are(
        a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>(),
        order in prop::collection::vec(any::<bool>(), 0..40), end in "[\r\n ]{0,3}",
    ) {
        let all: Vec<&str> = examples().map(|(_, example)| example.text.as_str()).collect();
        let (first, second) = (all[a.index(all.len())], all[b.index(all.len())]);
        let (mut one, mut two) = (first.lines(), second.lines());
        let mut mixed = String::new();
        for takes_first in order {
            let line = if takes_first { one.next() } else { two.next() };
            mixed.push_str(line.unwrap_or_default());
            mixed.push_str(if end.contains('\r') { "\r\n" } else { "\n" });
        }
        mixed.extend(one.chain(two).map(|line| format!("{line}{end}\n")));
        let mut at = cut.index(mixed.len().max(1)).max(mixed.len() / 2);
        while !mixed.is_char_boundary(at) {
            at -= 1;
        }
        mixed.truncate(at);
        let Ok(pieces) = read(mixed.as_bytes()) else { return Ok(()) };
        let found = diagnose(&pieces, &Context::default());
        prop_assert!(found.iter().filter(|finding| finding.confidence == Confidence::Cause).count() <= 1);
        for finding in found {
            for quote in &finding.quotes {
                prop_assert!(is_in(&quote.text, &mixed), "{quote:?} is not in\n{mixed}");
            }
        }
    }
}
