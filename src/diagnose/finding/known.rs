//! Gathers the facts that all pieces of evidence show.

use std::collections::BTreeSet;

use vramscope_engine::units::Bytes;

use super::context::Context;
use super::model_shape::ModelShape;
use crate::facts::{Fact, Facts, Place, derive};
use crate::kind;
use crate::oom::{Asker, Backend, OomMessage, Site};
use crate::{Digest, Evidence, Piece, Sign};

/// Adapters are fewer parameters than one in so many of the model's.
const FEW: u64 = 10;

/// Lines above and below an error in which frames and words belong to it.
const ABOVE: usize = 160;
const BELOW: usize = 60;

/// Values that people say in words: the name that a kind of facts captures, and the gap of phrases that it fills where no
/// setting does.
const SAID: &[(&str, &str)] = &[
    ("batch", "batch"),
    ("batch_short", "batch"),
    ("max_length", "max_length"),
    ("max_length_said", "max_length"),
];

/// Facts, and the digests of the texts that show them.
pub struct Known<'a> {
    /// The facts.
    pub facts: Facts,
    /// Digests of the texts, in order.
    pub texts: Vec<&'a Digest>,
    /// Signs that count, with the text that has them.
    pub signs: Vec<(usize, &'a Sign)>,
    /// Shape of the model, if the texts name one that is known.
    pub shape: Option<ModelShape>,
}

impl<'a> Known<'a> {
    /// Gathers the facts of all pieces.
    pub fn of(pieces: &'a [Piece]) -> Self {
        let mut known = Self {
            facts: Facts::default(),
            texts: Vec::new(),
            signs: Vec::new(),
            shape: None,
        };
        let errors = errors(pieces);
        for piece in pieces {
            known.take(piece, &errors);
        }
        known.facts.settle();
        known.shape = known
            .facts
            .values
            .get("model_name")
            .and_then(|name| ModelShape::named(name));
        known.add_shapes(pieces);
        known.hold_against_card(pieces);
        known
    }

    /// Adds what the person told of the run beside the texts: how much of the model it trains.
    pub fn learn(&mut self, context: &Context) {
        let Some(report) = context.report else { return };
        let place = Place::default();
        if report.trainable == report.params {
            self.facts.add(Fact::Full, place);
        } else if report.trainable < report.params / FEW {
            self.facts.add(Fact::Lora, place);
        }
    }

    fn take(&mut self, piece: &'a Piece, errors: &[Place]) {
        let place = Place {
            text: self.texts.len().saturating_sub(1),
            line: piece.line,
        };
        match &piece.evidence {
            Evidence::Text(digest) => {
                self.texts.push(digest);
                self.take_text(digest, errors);
            }
            Evidence::Oom(message) => self.take_error(message, place),
            Evidence::Smi(smi) => {
                if smi.devices.iter().any(|device| device.samples.len() > 2) {
                    self.facts.add(Fact::Reads, place);
                }
                if smi.devices.iter().any(rises) {
                    self.facts.add(Fact::Grows, place);
                }
            }
            Evidence::Log(log) if log.series.iter().any(|series| series.points.len() > 2) => {
                self.facts.add(Fact::Reads, place);
                self.facts.add(Fact::StepsRan, place);
            }
            _ => {}
        }
    }

    fn take_text(&mut self, digest: &'a Digest, errors: &[Place]) {
        let text = self.texts.len() - 1;
        derive(&mut self.facts, &digest.settings, text);
        if let Some(command) = &digest.command {
            let line = command.line;
            self.facts.add(Fact::HasCommand, Place { text, line });
        } else if digest.settings.len() > 3 {
            let line = digest.settings[0].line;
            self.facts.add(Fact::HasCommand, Place { text, line });
        }
        let is_beside = |line: usize| {
            let mut own = errors.iter().filter(|place| place.text == text).peekable();
            own.peek().is_none() || own.any(|error| line + ABOVE >= error.line && line <= error.line + BELOW)
        };
        let mut sizes = BTreeSet::new();
        for sign in &digest.signs {
            let Some(pattern) = kind::named(&sign.kind).and_then(|(_, kind)| kind.sign.get(sign.pattern)) else {
                continue;
            };
            if pattern.is_near && !is_beside(sign.line) {
                continue;
            }
            let place = Place { text, line: sign.line };
            for fact in &pattern.yields {
                self.facts.add(*fact, place);
            }
            if let (Some(tool), Some(version)) = (sign.values.get("tool"), sign.values.get("version")) {
                let tool = tool.to_ascii_lowercase().replace('_', "-");
                let tool = if tool == "swift" { "ms-swift".to_owned() } else { tool };
                self.facts.add_version(&tool, version, place);
            }
            self.remember_said(sign, &mut sizes);
            self.signs.push((text, sign));
        }
        // Of two sizes nobody knows which one ran.
        if let (Some(size), 1) = (sizes.first(), sizes.len()) {
            let size = (*size).clone();
            self.facts.values.entry("billions".into()).or_insert(size);
        }
    }

    /// Keeps what kinds that only show facts capture; sizes of models are gathered.
    fn remember_said(&mut self, sign: &'a Sign, sizes: &mut BTreeSet<&'a String>) {
        if kind::named(&sign.kind).is_none_or(|(_, kind)| !kind.words.is_empty()) {
            return;
        }
        let names = ["billions", "billions_said"];
        sizes.extend(names.iter().filter_map(|name| sign.values.get(*name)));
        for (name, gap) in SAID {
            if let Some(value) = sign.values.get(*name) {
                self.facts.values.entry((*gap).into()).or_insert_with(|| value.clone());
            }
        }
    }

    fn take_error(&mut self, message: &OomMessage, place: Place) {
        let facts = &mut self.facts;
        if message.asker == Asker::Host {
            facts.add(Fact::HostOom, place);
            return;
        }
        facts.add(Fact::Oom, place);
        match message.asker {
            Asker::Allocator(Backend::Mps) => facts.add(Fact::Mps, place),
            Asker::Driver(backend) => {
                facts.add(Fact::DriverError, place);
                if backend == Backend::Hip {
                    facts.add(Fact::Rocm, place);
                }
            }
            Asker::Allocator(Backend::Hip) => facts.add(Fact::Rocm, place),
            Asker::Allocator(Backend::Xpu) => facts.add(Fact::Xpu, place),
            _ => {}
        }
        if message.devices.len() > 1 {
            facts.add(Fact::SeveralRanks, place);
            facts.add(Fact::ManyCards, place);
        }
        if let Some(fact) = message.site.map(of_site) {
            facts.add(fact, place);
            facts.add(Fact::HasFrames, place);
        }
        let bytes = |amount: Option<crate::Amount>| amount.map(|amount| amount.bytes);
        let (request, total, free) = (bytes(message.request), bytes(message.total), bytes(message.free));
        if let (Some(request), Some(total)) = (request, total) {
            facts.add(Fact::HasNumbers, place);
            if request.get() <= total.get() / 100 {
                facts.add(Fact::SmallRequest, place);
            }
            if request.get() >= total.get() / 8 {
                facts.add(Fact::LargeRequest, place);
            }
            if request > total {
                facts.add(Fact::RequestExceeds, place);
            }
        }
        if let (Some(total), Some(free)) = (total, free)
            && free.get() >= total.get() / 4
        {
            facts.add(Fact::RoomBefore, place);
        }
        self.remember(message);
    }

    /// Keeps the numbers of the first error as values of phrases.
    fn remember(&mut self, message: &OomMessage) {
        let facts = &mut self.facts;
        let bytes = |amount: Option<crate::Amount>| amount.map(|amount| amount.bytes);
        let (request, total, free) = (bytes(message.request), bytes(message.total), bytes(message.free));
        let mut put = |name: &str, value: Option<Bytes>| {
            if let Some(value) = value {
                facts
                    .values
                    .entry(name.into())
                    .or_insert_with(|| super::words::bytes(value));
            }
        };
        put("request", request);
        put("total", total);
        put("free", free);
        put("allocated", bytes(message.allocated));
        put("unallocated", bytes(message.unallocated_in_all()));
        put("own", bytes(message.own));
        if let Some(device) = message.device {
            facts
                .values
                .entry("device".into())
                .or_insert_with(|| device.to_string());
        }
        if let Some(request) = request {
            let billions = request.get() as f64 / 4.0 / 1e9;
            facts
                .values
                .entry("request_in_fp32".into())
                .or_insert_with(|| format!("{billions:.2}"));
        }
    }

    /// Holds the weights of the named size against the card that the error names.
    fn hold_against_card(&mut self, pieces: &[Piece]) {
        let errors = pieces.iter().filter_map(|piece| match &piece.evidence {
            Evidence::Oom(message) => message.total,
            _ => None,
        });
        let (Some(total), Some(billions)) = (errors.map(|total| total.bytes).max(), self.facts.values.get("billions"))
        else {
            return;
        };
        if billions
            .parse::<f64>()
            .is_ok_and(|billions| billions * 2e9 > total.get() as f64)
        {
            self.facts.add(Fact::WeightsExceed, Place::default());
        }
    }

    /// Adds what the request's size is in shapes of the model that the texts name.
    fn add_shapes(&mut self, pieces: &[Piece]) {
        let Some(shape) = &self.shape else { return };
        let request = pieces.iter().find_map(|piece| match &piece.evidence {
            Evidence::Oom(message) => message.request,
            _ => None,
        });
        let Some(request) = request else { return };
        for (name, value) in shape.values(request) {
            if name == "vision_positions" && (self.facts.has(Fact::VisionPart) || self.facts.has(Fact::Sdpa)) {
                self.facts.add(Fact::VisionFit, Place::default());
            }
            if name == "head_rows" {
                self.facts.add(Fact::HeadFit, Place::default());
            }
            self.facts.values.entry(name.into()).or_insert(value);
        }
    }
}

/// Returns true if a device's memory rises by a tenth of the card from each reading to the next.
fn rises(device: &crate::SmiDevice) -> bool {
    let used: Vec<u64> = device
        .samples
        .iter()
        .filter_map(|sample| sample.used)
        .map(Bytes::get)
        .collect();
    let least = device.total.unwrap_or_default().get() / 10;
    used.len() > 2 && used.windows(2).all(|pair| pair[1] >= pair[0] + least.max(1))
}

/// Lines of errors in all texts.
fn errors(pieces: &[Piece]) -> Vec<Place> {
    let mut found = Vec::new();
    let mut text = 0_usize;
    for piece in pieces {
        match &piece.evidence {
            Evidence::Text(digest) => {
                text += 1;
                let signs = digest.signs.iter().filter(|sign| {
                    let pattern = kind::named(&sign.kind).and_then(|(_, kind)| kind.sign.get(sign.pattern));
                    let is_error = |fact: &Fact| matches!(fact, Fact::Oom | Fact::HostOom | Fact::Killed);
                    pattern.is_some_and(|pattern| pattern.yields.iter().any(is_error))
                });
                found.extend(signs.map(|sign| Place {
                    text: text - 1,
                    line: sign.line,
                }));
            }
            Evidence::Oom(_) => found.push(Place {
                text: text.saturating_sub(1),
                line: piece.line,
            }),
            _ => {}
        }
    }
    found
}

const fn of_site(site: Site) -> Fact {
    match site {
        Site::Load => Fact::Load,
        Site::Vision => Fact::VisionPart,
        Site::Attention => Fact::AttentionPart,
        Site::Loss => Fact::Loss,
        Site::Forward => Fact::Forward,
        Site::Backward => Fact::Backward,
        Site::OptimizerStates => Fact::FirstStates,
        Site::Optimizer => Fact::Step,
    }
}
