//! The list of prices: this browser's own, else the one that is published beside the page for a team.

use std::sync::Arc;

use leptos::prelude::*;
use leptos::task::spawn_local;
use vramscope_engine::device::Device;
use vramscope_plan::cost::Prices;

use crate::fetched::get;
use crate::shell::preferences;

/// Where this browser keeps the list.
const KEPT: &str = "prices";
/// Where a team publishes one.
const PUBLISHED: &str = "data/prices.json";

/// Whose list is on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Kept in this browser.
    Own,
    /// Published beside the page.
    Team,
}

/// The list of prices on screen.
#[derive(Debug, Clone, Copy)]
pub struct PriceList {
    /// The prices.
    pub prices: RwSignal<Arc<Prices>>,
    /// Whose they are.
    pub whose: RwSignal<Whose>,
    /// Fault in the list that was given last.
    pub fault: RwSignal<Option<String>>,
}

impl PriceList {
    /// Reads the list that this browser keeps; without one, fetches the team's.
    pub fn begin() -> Self {
        let kept = preferences::read(KEPT).and_then(|text| Prices::read(&text).ok());
        let list = Self {
            whose: RwSignal::new(Whose::Own),
            prices: RwSignal::new(Arc::new(kept.clone().unwrap_or_default())),
            fault: RwSignal::new(None),
        };
        // A page that was opened as a file has nothing beside it.
        let is_served = window().location().protocol().is_ok_and(|protocol| protocol != "file:");
        if kept.is_none() && is_served {
            spawn_local(async move {
                let got = get(PUBLISHED, "").await;
                let team = Prices::read(&got.text).ok().filter(|_| got.status == 200);
                let Some(team) = team.filter(|team| !team.is_empty()) else {
                    return;
                };
                let is_open = list.prices.try_with_untracked(|prices| prices.is_empty()) == Some(true);
                if is_open {
                    list.whose.set(Whose::Team);
                    list.prices.set(Arc::new(team));
                }
            });
        }
        list
    }

    /// Takes a list that was given, unless it has a fault.
    pub fn take(self, text: &str) {
        match Prices::read(text) {
            Ok(prices) => self.keep(prices),
            Err(fault) => self.fault.set(Some(fault.to_string())),
        }
    }

    /// Sets or removes the price of a card, as of today.
    pub fn set(self, card: &'static Device, per_hour: Option<f64>) {
        let mut prices = Prices::clone(&self.prices.get_untracked());
        prices.set(card, per_hour, per_hour.map(|_| today()));
        self.keep(prices);
    }

    /// Forgets this browser's list.
    pub fn clear(self) {
        preferences::write(KEPT, None);
        self.fault.set(None);
        self.whose.set(Whose::Own);
        self.prices.set(Arc::default());
    }

    fn keep(self, prices: Prices) {
        preferences::write(KEPT, Some(&prices.to_json()));
        self.fault.set(None);
        self.whose.set(Whose::Own);
        self.prices.set(Arc::new(prices));
    }
}

/// The day on this machine's calendar, such as `2026-11-29`.
fn today() -> String {
    let now = js_sys::Date::new_0();
    format!(
        "{:04}-{:02}-{:02}",
        now.get_full_year(),
        now.get_month() + 1,
        now.get_date()
    )
}
