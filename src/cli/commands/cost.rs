//! `vramscope cost`: what a run costs on each card, and where it is cheapest.

use clap::{ArgGroup, Args, ValueEnum};
use rayon::prelude::*;
use serde::Serialize;
use vramscope_engine::device::Device;
use vramscope_engine::format::gib;
use vramscope_engine::units::Seconds;
use vramscope_engine::verdict::Verdict;
use vramscope_plan::cost::{CostQuestion, CostRow, Prices, RankBy, cards, numbers, rank};
use vramscope_time::Clock;

use crate::clock::clock_of;
use crate::commands::examples;
use crate::failure::Failure;
use crate::input::count;
use crate::input::parallel_flags::ParallelFlags;
use crate::input::setup_flags::SetupFlags;
use crate::input::source::Source;
use crate::input::subject::Subject;
use crate::output::list::{self, Edge};
use crate::output::{self, Format};
use crate::predict::guarded;

/// What a run costs on each card and on several of them, the cheapest first
///
/// Prices are your own: none is built in. Without them cards are ranked by time. Each card keeps the micro-batches of the
/// setup, so that more cards take more samples in a step; several share the run by the first of DDP, ZeRO-1 and FSDP2 that
/// fits, unless --strategy says how.
#[derive(Debug, Args)]
#[command(
    override_usage = "vramscope cost <MODEL | --config FILE | --case JSON> [--prices FILE] [OPTIONS]",
    after_help = examples(EXAMPLES),
    allow_negative_numbers = true,
    group = ArgGroup::new("model-of").required(true).args(["model", "config", "case"]),
)]
pub struct Cost {
    #[command(flatten)]
    subject: Subject,
    /// Prices of cards for an hour: CSV with the columns card, per_hour and, if known, currency, date, source; or JSON of the
    /// same rows; or - for standard input
    #[arg(long, value_name = "FILE|-", value_parser = Source::parse)]
    prices: Option<Source>,
    /// Numbers of cards to try [default: 1,2,4,8; without prices 1]
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = count::up_to(4096))]
    gpus: Vec<u64>,
    /// Samples of the whole run, epochs and all, of which time, price and energy are told
    #[arg(long, value_name = "N", value_parser = count::samples)]
    samples: Option<u64>,
    /// Grams of CO₂ for a kilowatt-hour where it runs; needs --samples
    #[arg(long, value_name = "G/KWH", requires = "samples")]
    co2: Option<f64>,
    /// Order of the rows
    #[arg(long, value_enum, default_value_t = By::Cost)]
    by: By,
    /// Kernels measured on a card, as for `estimate`
    #[arg(long, visible_alias = "record", value_name = "FILE", value_parser = Source::parse)]
    kernels: Option<Source>,
    /// A card to try besides those with a price
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    parallel: ParallelFlags,
    #[command(flatten)]
    setup: SetupFlags,
}

/// Order of rows, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Cheapest first
    Cost,
    /// Fastest first
    Time,
}

const EXAMPLES: &str = "  vramscope cost qwen2.5-vl-7b --freeze lora --ckpt full --prices prices.csv
  vramscope cost llama3.1-8b --freeze qlora --prices prices.json --samples 50k
  vramscope cost qwen3-4b --freeze lora --by time";

/// The answer for scripts.
#[derive(Debug, Serialize)]
struct Document<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    rows: Vec<Entry<'a>>,
}

/// A row for scripts.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    card: &'a str,
    gpus: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'static str>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    needed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    cost: Option<vramscope_plan::cost::RunCost>,
}

impl Cost {
    /// Refuses what the flags cannot mean.
    fn check(&self) -> Result<(), Failure> {
        if self.parallel.names_world() {
            return Err(Failure::Input(
                "--world is what --gpus N,.. says here; leave it out".into(),
            ));
        }
        if self.co2.is_some_and(|co2| !(co2 >= 0.0 && co2.is_finite())) {
            return Err(Failure::Input(
                "--co2 must be 0 or more grams for a kilowatt-hour, such as 380".into(),
            ));
        }
        Ok(())
    }

    /// Simulates the run on each card.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(self) -> Result<(), Failure> {
        self.check()?;
        let prices = match &self.prices {
            Some(source) => Prices::read(&source.read_text()?).map_err(Failure::input)?,
            None => Prices::default(),
        };
        let meant = self
            .gpu
            .as_deref()
            .map(Device::by_name)
            .transpose()
            .map_err(Failure::input)?;
        let parallel = self.parallel.over(self.subject.parallel()?)?;
        let kernels = self.kernels;
        let (model, setup) = self.subject.read(&self.setup)?;
        let question = CostQuestion {
            model: &model,
            setup: &setup,
            parallel,
            prices: &prices,
            samples: self.samples,
            co2: self.co2,
        };
        let clocked: Result<Vec<_>, Failure> = cards(&prices, meant)
            .into_iter()
            .map(|card| Ok((card, clock_of(card, kernels.as_ref())?)))
            .collect();
        let gpus = match self.gpus.is_empty() {
            true => numbers(&prices, 1),
            false => self.gpus,
        };
        let mut rows = rows(&question, &clocked?, gpus)?;
        let by = match self.by {
            By::Cost => RankBy::Cost,
            By::Time => RankBy::Time,
        };
        rank(&mut rows, by);
        match self.format {
            Format::Text => output::print(&render(&model.name, &question, by, &rows)),
            Format::Json => output::print_json(&Document {
                model: &model.name,
                currency: prices.currency(),
                rows: rows.iter().map(Entry::of).collect(),
            }),
            Format::Jsonl => rows
                .iter()
                .map(Entry::of)
                .try_for_each(|entry| output::print_json_line(&entry)),
        }
    }
}

/// Simulates the run on each number of each card.
fn rows(
    question: &CostQuestion<'_>,
    cards: &[(&'static Device, Option<Clock>)],
    mut gpus: Vec<u64>,
) -> Result<Vec<CostRow>, Failure> {
    gpus.sort_unstable();
    gpus.dedup();
    let tried: Vec<_> = cards
        .iter()
        .flat_map(|card| gpus.iter().map(move |gpus| (card, *gpus)))
        .collect();
    tried
        .into_par_iter()
        .map(|((card, clock), gpus)| guarded(|| Ok(question.on(card, gpus, clock.as_ref()))))
        .collect()
}

impl<'a> Entry<'a> {
    fn of(row: &'a CostRow) -> Self {
        let fit = row.fit.as_ref().ok();
        Self {
            card: &row.card,
            gpus: row.gpus,
            strategy: row.strategy.map(|strategy| strategy.name()),
            verdict: fit.map_or("refused", |fit| fit.verdict.name()),
            needed: fit.map(|fit| fit.needed.get()),
            room: fit.map(|fit| fit.room.get()),
            reason: row.fit.as_ref().err().map(ToString::to_string),
            cost: row.cost,
        }
    }
}

/// Number of rows that do not run of which a text tells each; the others are counted.
const MOST_THAT_DO_NOT: usize = 8;

fn render(model: &str, question: &CostQuestion<'_>, by: RankBy, rows: &[CostRow]) -> String {
    let runs = |row: &&CostRow| matches!(&row.fit, Ok(fit) if fit.verdict != Verdict::Oom);
    let (running, others): (Vec<&CostRow>, Vec<&CostRow>) = rows.iter().partition(runs);
    let currency = question.prices.currency().unwrap_or("price");
    let order = match by {
        RankBy::Cost if question.prices.is_empty() => "fastest first, since no prices are given",
        RankBy::Cost => "cheapest first",
        RankBy::Time => "fastest first",
    };
    let mut text = format!("{model}: {order}\n\n");
    let per = match question.samples {
        Some(_) => format!("{currency}/run"),
        None if question.setup.seq > 0 => format!("{currency}/1M tokens"),
        None => format!("{currency}/1000 samples"),
    };
    let heads = [
        ("card", Edge::Left),
        ("how", Edge::Left),
        ("free", Edge::Right),
        ("step", Edge::Right),
        ("samples/s", Edge::Right),
        ("hours", Edge::Right),
        (&*format!("{currency}/h"), Edge::Right),
        (&*per, Edge::Right),
        ("kWh ≤", Edge::Right),
        ("kg CO₂ ≤", Edge::Right),
    ];
    let cells: Vec<[String; 10]> = running.iter().map(|row| cells(row, question)).collect();
    // A column of which nothing is known says nothing.
    text += &list::render_known(heads, &cells);
    if running.is_empty() {
        text += "No card of these runs it.\n";
    }
    if !others.is_empty() {
        text += "\nDo not run it:\n";
        for row in others.iter().take(MOST_THAT_DO_NOT) {
            let why = match &row.fit {
                Ok(fit) => format!("needs {} of {}", gib(fit.needed), gib(fit.room)),
                Err(why) => why.to_string(),
            };
            text += &format!("  {}: {why}\n", name(row));
        }
        if let Some(more) = others.len().checked_sub(MOST_THAT_DO_NOT).filter(|more| *more > 0) {
            text += &format!("  and {more} more (--format json has all)\n");
        }
    }
    if let Some([first, last]) = question.prices.days() {
        text += &match first == last {
            true => format!("\nPrices of {first}.\n"),
            false => format!("\nPrices of {first} to {last}.\n"),
        };
    }
    if question.prices.is_empty() {
        text += "\nGive --prices FILE (CSV: card,per_hour,currency,date,source) for what each costs.\n";
    }
    text
}

fn name(row: &CostRow) -> String {
    format!("{} × {}", row.gpus, row.card)
}

fn cells(row: &CostRow, question: &CostQuestion<'_>) -> [String; 10] {
    let fit = row.fit.as_ref().ok();
    let cost = row.cost;
    let of = |value: Option<f64>, digits: usize| value.map_or_else(String::new, |n| format!("{n:.digits$}"));
    let price = match question.samples {
        Some(_) => cost.and_then(|cost| cost.run),
        None => cost.and_then(|cost| cost.per_million_tokens.or(cost.per_thousand_samples)),
    };
    [
        name(row),
        row.strategy
            .map_or_else(String::new, |strategy| strategy.name().to_owned()),
        fit.map_or_else(String::new, |fit| match fit.verdict {
            Verdict::Tight => format!("{} (tight)", gib(fit.spare())),
            _ => gib(fit.spare()),
        }),
        cost.map_or_else(
            || "not timed".to_owned(),
            |cost| Seconds::new(cost.step_ms / 1e3).to_string(),
        ),
        of(cost.map(|cost| cost.samples_per_s), 2),
        of(cost.and_then(|cost| cost.hours), 1),
        of(cost.and_then(|cost| cost.per_hour), 2),
        of(price, 3),
        of(cost.and_then(|cost| cost.kwh_at_most), 1),
        of(cost.and_then(|cost| cost.kg_co2_at_most), 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_which_nothing_is_known_are_left_out() {
        let device = Device::by_name("H100").expect("it is known");
        let prices = Prices::default();
        let model = vramscope_engine::Model::from_catalogue("gpt2").expect("it is built in");
        let setup = vramscope_engine::Setup {
            seq: 256,
            ..vramscope_engine::Setup::default()
        };
        let question = CostQuestion {
            model: &model,
            setup: &setup,
            parallel: None,
            prices: &prices,
            samples: None,
            co2: None,
        };
        let row = question.on(device, 1, clock_of(device, None).expect("it ships").as_ref());
        let text = anstream::adapter::strip_str(&render("gpt2", &question, RankBy::Cost, &[row])).to_string();
        assert!(text.contains("1 × H100 SXM") && text.contains("samples/s"), "{text}");
        assert!(!text.contains("kWh") && !text.contains("price/h"), "{text}");
    }
}
