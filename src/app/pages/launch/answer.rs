//! What became of the files: lines, defaults, assumptions, and what is missing.

use leptos::prelude::*;

use super::Looked;
use super::lists::{Group, Item, Listed, Quiet, Taken};
use super::phrases::Phrases;
use crate::i18n::use_i18n;
use crate::launch_words::LaunchWords;
use crate::part::{part, text};
use crate::shell::Store;
use crate::state::Key;
use crate::worker::launched::{LaunchFault, LaunchRead, LaunchText, ReadFate, ReadLine, Said};

/// The answer to the files, or the reason for having none.
#[component]
pub fn AnswerView() -> impl IntoView {
    let i18n = use_i18n();
    let phrases = Phrases::of(i18n);
    let looked = Looked::get();
    part(move || {
        let words = phrases.now();
        Some(match looked.answer.get() {
            None => view! { <p class="muted" role="status">{words.word("reading")}</p> }.into_any(),
            Some(Err(fault)) => view! {
                <p class="launch-fault" role="alert" data-testid="launch-fault">
                    {fault_words(words, &fault)}
                </p>
            }
            .into_any(),
            Some(Ok(read)) => {
                let files = looked.texts();
                view! { <ReadView read files /> }.into_any()
            }
        })
    })
}

fn fault_words(words: &LaunchWords, fault: &LaunchFault) -> String {
    let named = |name: &str| {
        if name.is_empty() {
            words.word("pasted")
        } else {
            name.to_owned()
        }
    };
    match fault {
        LaunchFault::TooLarge(name) => words.say("f_too_large", &[("name", &named(name))]),
        LaunchFault::Unreadable(name, reason) => {
            words.say("f_unreadable", &[("name", &named(name)), ("reason", reason)])
        }
        LaunchFault::UnknownTool(name, tools) => {
            words.say("f_unknown_tool", &[("name", &named(name)), ("tools", tools)])
        }
    }
}

#[component]
fn ReadView(read: LaunchRead, files: Vec<LaunchText>) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let words = phrases.now();
    let several = files.len() > 1;
    let place = |line: &ReadLine| {
        let number = line.line.to_string();
        let at = match line.cell {
            Some(cell) => words.say("cell", &[("cell", &cell.to_string()), ("line", &number)]),
            None => words.say("line", &[("line", &number)]),
        };
        let file = files.get(line.source).filter(|file| several && !file.name.is_empty());
        file.map_or_else(|| at.clone(), |file| format!("{}, {at}", file.name))
    };
    let refusals = refusals(words, &read);
    let not_simulated: Vec<Item> = read
        .lines
        .iter()
        .filter_map(|line| Some(Item::of_line(line, open(words, line)?, place(line))))
        .chain(
            read.not_simulated
                .iter()
                .map(|said| Item::of_remark(words.remark(said))),
        )
        .collect();
    let unknown: Vec<Item> = read
        .lines
        .iter()
        .filter_map(|line| Some(Item::of_line(line, unknown(words, line)?, place(line))))
        .collect();
    let assumed = read
        .assumed
        .iter()
        .map(|said| Item::of_remark(words.remark(said)))
        .collect();
    let taken: Vec<_> = read
        .lines
        .iter()
        .filter(|line| line.fate == ReadFate::Simulated)
        .map(|line| (line.key.clone(), line.value.clone(), place(line)))
        .collect();
    let tool = words.say("read_as", &[("tool", &read.tool)]);
    view! {
        <p class="launch-tool" data-testid="launch-as">{tool}</p>
        {refusals}
        <Listed name="not-simulated" title=phrases.live("s_not_simulated") items=not_simulated />
        <Listed name="unknown" title=phrases.live("s_unknown") items=unknown />
        <Missing missing=read.missing.clone() />
        <Listed name="assumed" title=phrases.live("s_assumed") items=assumed />
        <Taken taken />
        <Quiet name="defaults" title="s_defaults" groups=vec![defaults(&read)] />
        <Quiet name="no-effect" title="s_no_effect" groups=no_effect(words, &read) />
    }
}

/// Why the setup, or its model, is not taken.
fn refusals(words: &LaunchWords, read: &LaunchRead) -> Vec<AnyView> {
    // Of a name that is looked for more is said above.
    let is_sought = !Looked::get().unknown_model().is_empty();
    let model = read.model_fault.as_ref().filter(|_| !is_sought).map(|reason| {
        let name = read.model.clone().unwrap_or_default();
        words.say("model_unknown", &[("model", &name), ("reason", reason)])
    });
    let setup = read.entries.as_ref().err();
    let setup = setup.map(|reason| words.say("refused", &[("reason", reason)]));
    let another = (!read.another_run.is_empty()).then(|| {
        let what = read.another_run.iter().map(|(given, why)| match given {
            Some(given) => format!("{given} ({})", words.reason(why)),
            None => words.reason(why),
        });
        words.say("another_run", &[("what", &what.collect::<Vec<_>>().join("; "))])
    });
    let all = model.into_iter().chain(setup).chain(another);
    all.map(|text| view! { <p class="launch-fault" role="alert" data-testid="launch-refused">{text}</p> }.into_any())
        .collect()
}

/// Why a line that changes memory is not simulated.
fn open(words: &LaunchWords, line: &ReadLine) -> Option<String> {
    match &line.fate {
        ReadFate::NotSimulated(why) => Some(words.reason(why)),
        ReadFate::Wrong(takes) => Some(words.say("wrong", &[("takes", &words.reason(takes))])),
        _ => None,
    }
}

fn unknown(words: &LaunchWords, line: &ReadLine) -> Option<String> {
    match &line.fate {
        ReadFate::Unknown(None) => Some(words.word("unknown")),
        ReadFate::Unknown(Some(key)) => Some(words.say("unknown_near", &[("key", key)])),
        _ => None,
    }
}

fn defaults(read: &LaunchRead) -> Group {
    let keys = read.defaults.iter().map(|(key, value)| format!("{key}: {value}"));
    Group {
        reason: String::new(),
        keys: keys.collect(),
    }
}

/// Lines without effect by their reason, in the order in which the reasons come.
fn no_effect(words: &LaunchWords, read: &LaunchRead) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for line in &read.lines {
        let reason = match &line.fate {
            ReadFate::NoEffect(why) => words.reason(why),
            ReadFate::Off => words.word("off"),
            ReadFate::Replaced => words.word("replaced"),
            _ => continue,
        };
        match groups.iter_mut().find(|group| group.reason == reason) {
            Some(group) => group.keys.push(line.key.clone()),
            None => groups.push(Group {
                reason,
                keys: vec![line.key.clone()],
            }),
        }
    }
    groups
}

/// What the files do not tell: remarks, and the card, which no file names.
#[component]
fn Missing(missing: Vec<Said>) -> impl IntoView {
    let phrases = Phrases::of(use_i18n());
    let store = Store::get();
    let looked = Looked::get();
    let square = missing.iter().find(|said| said.word == "most_pixels");
    let square = square.and_then(|said| said.values.iter().find(|(name, _)| name == "side"));
    let take = square.map(|(_, side)| {
        let side = side.clone();
        let (shown, taken) = (side.clone(), side.clone());
        let is_taken = move || looked.square.with(|square| square.is_some());
        view! {
            <button
                type="button"
                class="tool launch-square"
                data-testid="launch-square"
                aria-pressed=text(move || is_taken().to_string())
                on:click=move |_| looked.square.update(|square| *square = square.is_none().then(|| taken.clone()))
            >
                {text(move || phrases.now().say("take_square", &[("side", &shown)]))}
            </button>
        }
    });
    let card = store
        .reading()
        .with_untracked(|reading| reading.good.get(Key::Gpu).to_owned());
    let words = phrases.now();
    let items = missing.iter().map(|said| Item::of_remark(words.remark(said)));
    let items = items
        .chain([Item::of_remark(words.say("card", &[("card", &card)]))])
        .collect();
    view! {
        <Listed name="missing" title=phrases.live("s_missing") items />
        {take}
    }
}
