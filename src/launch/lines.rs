//! Gives each line of the files its fate, and sets of the run what it says.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::draft::{Draft, Fault};
use crate::entry::Entry;
use crate::keys::{self, Meaning, NoEffect, find, may_matter};
use crate::launcher::Launcher;
use crate::off::{is_off, switched_off};
use crate::remark::{Note, Remark};
use crate::tool::{Tool, moves_model};
use crate::{Default, Fate, Launch, Line, Parsed, author, left_out, python, script};

/// Options of transformers' arguments that version 5 has no more (`training_args.py` of 4.46 and 5.17); accelerate's launcher
/// has one of the second's name.
pub(crate) const BEFORE_5: [&str; 5] = [
    "evaluation_strategy",
    "fsdp_transformer_layer_cls_to_wrap",
    "fsdp_min_num_params",
    "no_cuda",
    "per_gpu_train_batch_size",
];

/// A reading under way.
pub(crate) struct Reading {
    tool: Tool,
    draft: Draft,
    lines: Vec<Line>,
    /// Line that set a setting.
    set: BTreeMap<&'static str, usize>,
    /// Script or module of a command.
    script: Option<String>,
    /// Keys that no table knows.
    unknown: usize,
}

/// Unknown keys of which a similar one is looked for: a file with more of them is of something else, and the search takes as
/// long as all keys are many.
const MOST_SOUGHT: usize = 256;

impl Reading {
    pub fn new(tool: Tool) -> Self {
        Self {
            tool,
            draft: Draft::default(),
            lines: Vec::new(),
            set: BTreeMap::new(),
            script: None,
            unknown: 0,
        }
    }

    /// Notes what starts the processes, if a source says so.
    pub fn launched_by(&mut self, launcher: Option<Launcher>) {
        self.draft.launcher = launcher.or(self.draft.launcher);
    }

    /// Takes a source: its entries, and for a script what else its lines say.
    pub fn take_source(&mut self, source: usize, parsed: Parsed, facts: Option<&python::Facts>) {
        let tool = parsed.tool.filter(|of| of.is_addition()).unwrap_or(self.tool);
        let is_script = parsed.script.is_some() && parsed.tool.is_some();
        if let (true, Some(facts)) = (is_script, facts) {
            self.take(source, tool, parsed.entries);
            self.take(source, Tool::DeepSpeed, facts.deepspeed.clone());
            self.take_open(source, &facts.open);
            return;
        }
        let of_script = facts.filter(|_| tool == self.tool);
        let is_option =
            |entry: &Entry| of_script.is_some_and(|facts| script::is_of_script(facts, &entry.key.replace('-', "_")));
        let (options, entries): (Vec<_>, Vec<_>) = parsed.entries.into_iter().partition(is_option);
        self.take_options(source, options);
        self.script = parsed.way.script.or(self.script.take());
        self.take(source, tool, entries);
    }

    /// Takes what a script says of the run as a whole. Returns what it leaves to its defaults.
    pub fn take_rest(&mut self, facts: &python::Facts) -> Option<Remark> {
        if facts.is_unlimited {
            self.take_no_length();
        }
        facts.took_defaults.then(|| Note::ScriptDefaults.into())
    }

    /// Takes the entries of a source.
    fn take(&mut self, source: usize, tool: Tool, entries: Vec<Entry>) {
        let mut known = keys::keys(tool);
        for (key, meaning) in keys::script_keys() {
            known.entry(key).or_insert(meaning);
        }
        if tool == Tool::DeepSpeed
            && !entries.is_empty()
            && !entries.iter().any(|entry| entry.key == "zero_optimization.stage")
        {
            // Its own default, whatever accelerate would take.
            self.draft.zero_stage = self.draft.zero_stage.or(Some(0));
        }
        let off: Vec<String> = entries.iter().filter_map(switched_off).collect();
        for mut entry in entries {
            let mut key = entry.key.replace('-', "_");
            if let Some(plain) = key.strip_prefix("no_")
                && !known.contains_key(key.as_str())
                && known.contains_key(plain)
            {
                // HfArgumentParser's option for a truth value that is true by default.
                entry.value = Value::Bool(false);
                key = plain.to_owned();
            }
            if let Some(whole) = abbreviated(&key, &known) {
                key = whole.to_owned();
            }
            if BEFORE_5.contains(&key.as_str()) {
                self.draft.is_before_5 = Some(true);
            }
            if names_cut_loss(&key, &entry.value) {
                self.draft.cuts_loss = Some(true);
            }
            let is_within_off = off.iter().any(|object| key.starts_with(object));
            let meaning = find(&known, &key);
            let effect = match meaning {
                Some(Meaning::Simulated(knob, _)) => left_out::of_knob(knob, &entry.value),
                Some(Meaning::NotSimulated(why, _)) => left_out::of_key(&key, &entry.value, why),
                _ => left_out::NOT_KNOWN,
            };
            let fate = match meaning {
                Some(Meaning::Simulated(knob, _)) => self.simulate(knob, &entry.value),
                Some(Meaning::NoEffect(why)) => Fate::NoEffect(why),
                Some(Meaning::NotSimulated(why, default)) if is_within_off || is_off(&entry.value, default) => {
                    Fate::Off(why)
                }
                Some(Meaning::NotSimulated(why, _)) => Fate::NotSimulated(why.text().to_owned()),
                // Whatever it is, it is off.
                None if !entry.value.is_number() && is_off(&entry.value, "") => Fate::NoEffect(NoEffect::Unset),
                None if self.unknown >= MOST_SOUGHT => Fate::Unknown(None),
                None => {
                    self.unknown += 1;
                    unknown(&key, &known)
                }
            };
            self.lines.push(Line {
                source,
                entry,
                fate,
                effect,
            });
        }
    }

    /// Takes options of a command that its script reads.
    fn take_options(&mut self, source: usize, entries: Vec<Entry>) {
        self.lines.extend(entries.into_iter().map(|entry| Line {
            source,
            entry,
            fate: Fate::NoEffect(NoEffect::Script),
            effect: left_out::NOT_KNOWN,
        }));
    }

    /// Takes lines of a script that decide and are not simulated.
    fn take_open(&mut self, source: usize, open: &[python::Open]) {
        self.lines.extend(open.iter().map(|open| Line {
            source,
            entry: open.entry.clone(),
            fate: Fate::NotSimulated(open.why.clone()),
            effect: open.effect,
        }));
    }

    /// Notes that no line limits the length of samples: a function of the script makes the batches.
    fn take_no_length(&mut self) {
        if let Some(line) = self.set.get("seq") {
            self.lines[*line].fate = Fate::NoEffect(NoEffect::Data);
        }
        self.draft.seq = None;
        self.set.insert("seq", self.lines.len());
    }

    fn simulate(&mut self, knob: &'static str, value: &Value) -> Fate {
        let fate = match self.draft.set(knob, value) {
            Ok(()) => Fate::Simulated,
            Err(Fault::Wrong(takes)) => return Fate::Wrong(takes),
            Err(Fault::NotSimulated(why)) => Fate::NotSimulated(why.to_owned()),
        };
        // TRL's `max_length: null` is no limit, and not the default.
        let is_unlimited = value.is_null() && knob == "seq";
        if (!value.is_null() || is_unlimited)
            && *value != "auto"
            && let Some(earlier) = self.set.insert(knob, self.lines.len())
        {
            self.lines[earlier].fate = Fate::Replaced;
        }
        fate
    }

    pub fn finish(mut self) -> Launch {
        let mut defaults = Vec::new();
        let given = std::mem::take(&mut self.draft);
        for (key, meaning) in keys::keys(self.tool) {
            let Meaning::Simulated(knob, value) = meaning else {
                continue;
            };
            if value.is_empty() || self.set.contains_key(knob) {
                continue;
            }
            // The tables hold values that the draft takes, by test.
            let _ = self.draft.set(knob, &Value::String(value.to_owned()));
            defaults.push(Default { key, value });
        }
        let mut draft = given.over(self.draft);
        draft.takes_default_bf16 = (!self.set.contains_key("bf16")).then_some(true);
        let brings_loss = |model: &str| author::brings_old_loss(model, self.tool);
        let has_old_loss = author::has_old_loss(self.tool) || draft.model.as_deref().is_some_and(brings_loss);
        draft.old_loss = has_old_loss.then_some(true);
        draft.is_moved = self.script.as_deref().is_some_and(moves_model).then_some(true);
        draft.pads_to_limit = author::pads_to_limit(self.tool, &draft).then(|| self.tool.name());
        if self.tool == Tool::Llava {
            author::compose_llava(&mut draft);
        }
        Launch {
            tool: self.tool,
            lines: self.lines,
            defaults,
            draft,
            absent: Vec::new(),
            remarks: Vec::new(),
            own_program: None,
            on_older_card: None,
        }
    }
}

/// True for what has axolotl compute the loss without logits: its key, or its plugin.
fn names_cut_loss(key: &str, value: &Value) -> bool {
    let is_plugin = |one: &Value| one.as_str().is_some_and(|name| name.ends_with("CutCrossEntropyPlugin"));
    match key {
        "cut_cross_entropy" => *value == true,
        "plugins" => is_plugin(value) || value.as_array().is_some_and(|all| all.iter().any(is_plugin)),
        _ => false,
    }
}

/// The only key that begins with a shortened one, as `argparse` takes it.
fn abbreviated(key: &str, known: &BTreeMap<&'static str, Meaning>) -> Option<&'static str> {
    if known.contains_key(key) || key.len() < 5 || find(known, key).is_some() {
        return None;
    }
    let mut all = known.keys().filter(|own| own.starts_with(key) && !own.contains('.'));
    let only = all.next()?;
    all.next().is_none().then_some(*only)
}

/// Fate of a key that no table knows: its name may say that it changes no memory, unless it is a mistyped one that does.
fn unknown(key: &str, known: &BTreeMap<&'static str, Meaning>) -> Fate {
    let similar = similar(key, known);
    let decides = similar.is_some_and(|key| !matches!(known.get(key), Some(Meaning::NoEffect(_))));
    match decides || may_matter(key) {
        true => Fate::Unknown(similar),
        false => Fate::NoEffect(NoEffect::Name),
    }
}

/// Finds the key of a tool that is nearest to a mistyped one.
fn similar(key: &str, known: &BTreeMap<&'static str, Meaning>) -> Option<&'static str> {
    let score = |name: &&'static str| strsim::jaro_winkler(key, name);
    let best = known.keys().copied().max_by(|a, b| score(a).total_cmp(&score(b)))?;
    (score(&best) > 0.9).then_some(best)
}
