//! Holds what the attention page shows: the call, its curves and the selected length.

use leptos::prelude::*;
use vramscope_benchmark::MeasuredPoint;
use vramscope_benchmark::Record;
use vramscope_engine::attention::{Algorithm, Call};
use vramscope_engine::device::Device;
use vramscope_engine::tape::Gpu;

use crate::shell::{MyCard, Store};
use crate::state::{Form, Key, Reading};
use crate::worker::attention::{algorithms, call};
use crate::worker::protocol::AttentionCurve;
use crate::worker::{Answer, Ask, Engine, Slot};

/// Length that is selected before the user selects one.
const DEFAULT_LENGTH: u64 = 2048;

/// State of the attention page, derived from the store.
#[derive(Clone, Copy)]
pub struct Attention {
    /// Attention call to analyse, or the reason why there is none.
    pub call: Memo<Result<Call, String>>,
    /// Algorithms that are drawn, in the order of the legend.
    pub shown: Memo<Vec<Algorithm>>,
    /// Selected card; `None` if its name is unknown.
    pub card: Memo<Option<&'static Device>>,
    /// Curves received last, by the algorithm's name.
    pub curves: RwSignal<Vec<AttentionCurve>>,
    /// Length under the pointer.
    pub pointed: RwSignal<Option<f64>>,
    /// Selected length.
    pub selected: Memo<u64>,
    /// Algorithm whose formula is shown.
    pub chosen: RwSignal<Algorithm>,
    /// Measured points of the loaded record, with the name of its file or of the user's card.
    pub record: RwSignal<Option<(String, Vec<MeasuredPoint>)>>,
}

impl Attention {
    /// Provides the state to the page, and asks the engine for curves now and after every change of the entries.
    pub fn provide() -> Self {
        let reading = Store::get().reading();
        let attention = Self {
            call: Memo::new(move |_| reading.with(call)),
            shown: Memo::new(move |_| reading.with(algorithms)),
            card: Memo::new(move |_| reading.with(|r| Device::by_name(&r.gpu).ok())),
            curves: RwSignal::default(),
            pointed: RwSignal::new(None),
            selected: Memo::new(move |_| reading.with(selected)),
            chosen: RwSignal::new(Algorithm::Standard),
            record: RwSignal::new(points_of_my_card()),
        };
        provide_context(attention);
        let entries = Memo::new(move |_| reading.with(Reading::of_attention));
        let engine = Engine::get();
        Effect::new(move || {
            engine.ask(Slot::Attention, Ask::Attention(entries.get()), move |answer, _| {
                if let Some(Answer::Attention(curve)) = answer
                    && let Some(curve) = curve.open()
                {
                    // The answer may arrive after the page is left.
                    attention.curves.try_update(|curves| {
                        curves.retain(|known| known.algorithm != curve.algorithm);
                        curves.push(curve);
                    });
                }
            });
        });
        on_cleanup(move || engine.cancel(Slot::Attention));
        attention
    }

    /// Returns the state that the page provides.
    pub fn get() -> Self {
        expect_context()
    }

    /// Reason why the entries are no attention call, so that there are no curves.
    pub fn refusal(self) -> Option<String> {
        self.call.get().err()
    }

    /// Length at which figures and formulas are shown: the one under the pointer, or else the selected one.
    pub fn shown_length(self) -> u64 {
        self.pointed.get().map_or_else(|| self.selected.get(), |x| x as u64)
    }

    /// GPU to simulate: the selected card, or the engine's default if too little is known about it.
    pub fn gpu(self) -> Gpu {
        self.card.get().and_then(Device::gpu).unwrap_or_default()
    }

    /// Curve of an algorithm, if it is shown and has arrived.
    pub fn curve(self, algorithm: Algorithm) -> Option<AttentionCurve> {
        self.curves
            .with(|curves| curves.iter().find(|c| c.algorithm == algorithm.name()).cloned())
    }

    /// Measured points of an algorithm for exactly this attention call.
    pub fn measured(self, algorithm: Algorithm) -> Vec<MeasuredPoint> {
        let Ok(call) = self.call.get() else { return Vec::new() };
        self.record.with(|record| {
            let points = record.iter().flat_map(|(_, points)| points);
            points
                .filter(|point| point.algorithm == algorithm && point.is_of(&call))
                .cloned()
                .collect()
        })
    }

    /// Selects a length.
    pub fn select(self, length: f64) {
        Store::get().set(Key::At, (length as u64).to_string());
    }
}

/// Name of the user's own card, and the points measured on it.
fn points_of_my_card() -> Option<(String, Vec<MeasuredPoint>)> {
    let record = Record::read(&MyCard::attention()?).ok()?;
    let points = MeasuredPoint::all(&record);
    (!points.is_empty()).then_some((record.device.name, points))
}

/// Length in the entries, or else [`DEFAULT_LENGTH`].
fn selected(reading: &Reading) -> u64 {
    let length = Form::Count
        .read(reading.good.get(Key::At))
        .ok()
        .and_then(|v| v.as_u64());
    length.unwrap_or(DEFAULT_LENGTH)
}
