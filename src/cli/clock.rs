//! Where the time of a step comes from: a card's measured kernels, or its data sheet.

use vramscope_engine::device::Device;
use vramscope_engine::record::Record;
use vramscope_engine::setup::Parallel;
use vramscope_engine::tape::Gpu;
use vramscope_engine::time::communication::Link;
use vramscope_engine::time::pipeline::Pipeline;
use vramscope_engine::time::{
    Asked, Collectives, Costs, Expense, H200, Kernels, Measured, Milliseconds, Network, Pace, Rates, Run, TimeAnswer,
};
use vramscope_engine::{Case, Model, Setup};

use crate::failure::Failure;
use crate::input::source::Source;
use crate::predict::guarded;

/// What tells the time of a card.
pub struct Clock {
    rates: Rates,
    measured: Measured,
    /// Whether the measured kernels are this card's.
    has_kernels: bool,
    link: Link,
    /// Whether the measured collectives went over that link.
    has_collectives: bool,
    gpu: Gpu,
    sources: [String; 2],
}

impl Clock {
    /// For a card: from measured kernels where a file of them was given or the card is the one whose kernels
    /// come with the program, else from the data sheet. Nothing where the data sheet is silent.
    ///
    /// # Errors
    /// When the file cannot be read or holds no kernels.
    pub fn of(card: &Device, gpu: Gpu, file: Option<&Source>) -> Result<Option<Self>, Failure> {
        let Some(rates) = Rates::of(card) else {
            return Ok(None);
        };
        let own = Measured::read(H200).map_err(|error| Failure::Broken(error.to_string()))?;
        let is_own = card.is_called(&own.card);
        let has_kernels = file.is_some() || is_own;
        let measured = match file {
            Some(file) => read(file, own, is_own)?,
            None => own,
        };
        let kernels = match has_kernels {
            true => format!("kernels measured on {} through {}", measured.card, measured.software),
            false => format!("the data sheet of {}", card.name),
        };
        let host = format!("single operations measured on a host with an {}", measured.host);
        Ok(Some(Self {
            link: Link::of(card).unwrap_or_else(|| Link::pcie(rates.pcie)),
            has_collectives: has_kernels,
            rates,
            measured,
            has_kernels,
            gpu,
            sources: [kernels, host],
        }))
    }

    /// The same with GPUs that are joined by a network of so many bytes a second, where that was given.
    #[must_use]
    pub fn over(self, network: Option<f64>) -> Self {
        match network {
            Some(rate) => Self {
                link: Link::network(rate),
                has_collectives: false,
                ..self
            },
            None => self,
        }
    }

    /// What each kernel and chore takes.
    pub fn costs(&self) -> Costs<'_> {
        let kernels = self.has_kernels.then_some(&self.measured.kernels);
        Costs::new(self.rates, kernels, &self.measured.pace)
    }

    /// Where kernels' times and the host's pace come from.
    pub fn sources(&self) -> [&str; 2] {
        self.sources.each_ref().map(String::as_str)
    }

    fn run<'a>(
        &'a self,
        model: &Model,
        (setup, parallel): (&'a Setup, Option<&'a Parallel>),
    ) -> Result<Run<'a>, Failure> {
        let collectives = self.has_collectives.then_some(&self.measured.collectives);
        let network = Network::new(self.link, collectives);
        guarded(|| Run::record(model, setup, parallel, self.gpu, network))
    }

    /// The time of a case's step, phase by phase.
    ///
    /// # Errors
    /// As [`guarded`], and when the case's model is not known.
    pub fn time_of_case(&self, case: &Case) -> Result<Milliseconds, Failure> {
        let model = Model::from_case(case).map_err(Failure::input)?;
        let run = self.run(&model, (&case.setup, case.parallel.as_ref()))?;
        Ok(run.time(&self.costs()).together.milliseconds())
    }

    /// Where a setup's time goes, with data that comes so, and what the run costs.
    ///
    /// # Errors
    /// As [`guarded`].
    pub fn answer(
        &self,
        model: &Model,
        setup: (&Setup, Option<&Parallel>),
        data: Option<Pipeline>,
        expense: Expense,
    ) -> Result<(Milliseconds, TimeAnswer<'_>), Failure> {
        let mut run = self.run(model, setup)?;
        if let Some(data) = data {
            run = run.with_data(data);
        }
        let sources = self.sources();
        Ok(run.answer(&self.costs(), Asked { sources, expense }))
    }
}

/// A file of measured kernels, or a benchmark's record, which says nothing of the host's pace; what it lacks of what
/// cards do together comes from our `own` measurement where `is_own` card is meant.
fn read(file: &Source, own: Measured, is_own: bool) -> Result<Measured, Failure> {
    let mut text = String::new();
    let mut input = file.open()?;
    std::io::Read::read_to_string(&mut input, &mut text).map_err(|error| file.unreadable(&error))?;
    let mut measured = match Record::read(&text) {
        Ok(record) => of_record(&record, own.pace),
        Err(_) => Measured::read(&text).map_err(Failure::input)?,
    };
    if is_own && measured.collectives.is_empty() {
        measured.collectives = own.collectives;
    }
    Ok(measured)
}

fn of_record(record: &Record, pace: Pace) -> Measured {
    Measured {
        card: record.device.name.clone(),
        software: format!("{} bench", record.tool.name),
        host: "Intel Xeon Processor of the reference measurements".to_owned(),
        kernels: Kernels::of_record(record),
        collectives: Collectives::of_record(record),
        pace,
    }
}
