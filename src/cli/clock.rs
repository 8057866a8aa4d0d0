//! Where the time of a step comes from: a card's measured kernels, or its data sheet.

use vramscope_engine::device::Device;
use vramscope_engine::dtype::DType;
use vramscope_engine::record::Record;
use vramscope_engine::setup::Precision;
use vramscope_engine::tape::Gpu;
use vramscope_engine::time::{Costs, H200, Kernels, Measured, Pace, Rates, StepTime, TimeAnswer, estimate};
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
        let has_kernels = file.is_some() || names(card, &own.card);
        let measured = match file {
            Some(file) => read(file, own.pace)?,
            None => own,
        };
        let kernels = match has_kernels {
            true => format!("kernels measured on {} through {}", measured.card, measured.software),
            false => format!("the data sheet of {}", card.name),
        };
        let host = format!("single operations measured on a host with an {}", measured.host);
        Ok(Some(Self {
            rates,
            measured,
            has_kernels,
            gpu,
            sources: [kernels, host],
        }))
    }

    /// The time of a setup's step.
    ///
    /// # Errors
    /// As [`guarded`].
    pub fn time(&self, model: &Model, setup: &Setup) -> Result<StepTime, Failure> {
        let kernels = self.has_kernels.then_some(&self.measured.kernels);
        let costs = Costs::new(self.rates, kernels, &self.measured.pace);
        guarded(|| estimate(model, setup, self.gpu, &costs))
    }

    /// The time of a case's step.
    ///
    /// # Errors
    /// As [`Self::time`], and when the case's model is not known.
    pub fn time_of_case(&self, case: &Case) -> Result<StepTime, Failure> {
        let model = Model::from_case(case).map_err(Failure::input)?;
        self.time(&model, &case.setup)
    }

    /// Where a setup's time goes.
    pub fn answer(&self, time: &StepTime, setup: &Setup) -> TimeAnswer<'_> {
        let dtype = match setup.precision {
            Precision::Fp32 => DType::F32,
            Precision::AmpFp16 => DType::F16,
            Precision::Bf16 | Precision::AmpBf16 => DType::Bf16,
        };
        time.answer(
            setup,
            self.rates.peak(dtype),
            self.sources.each_ref().map(String::as_str),
        )
    }
}

/// A file of measured kernels, or a benchmark's record, which says nothing of the host's `pace`.
fn read(file: &Source, pace: Pace) -> Result<Measured, Failure> {
    let mut text = String::new();
    let mut input = file.open()?;
    std::io::Read::read_to_string(&mut input, &mut text).map_err(|error| file.unreadable(&error))?;
    match Record::read(&text) {
        Ok(record) => Ok(Measured {
            card: record.device.name.clone(),
            software: format!("{} bench", record.tool.name),
            host: "Intel Xeon Processor of the reference measurements".to_owned(),
            kernels: Kernels::of_record(&record),
            pace,
        }),
        Err(_) => Measured::read(&text).map_err(Failure::input),
    }
}

/// Whether a card is the one that a driver calls so.
fn names(card: &Device, driver: &str) -> bool {
    card.name == driver || card.aliases.iter().any(|alias| alias == driver)
}
