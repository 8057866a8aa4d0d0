//! What cards cost for an hour: a person's own list, or a team's. None is built in, since prices change by the week.

use serde::{Deserialize, Serialize};
use vramscope_engine::device::{Device, DeviceError};

/// Largest list that is read, in bytes.
pub const MOST_BYTES: usize = 256 << 10;

/// Price of one card for one hour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Name of the card, in any form that [`Device::by_name`] takes.
    pub card: String,
    /// Price of one card for one hour.
    #[serde(alias = "price", alias = "price_per_hour")]
    pub per_hour: f64,
    /// Currency of the price, such as `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Day on which the price was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Whose price it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Prices of cards, each named once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(Vec<(&'static Device, Price)>);

/// Fault in a list of prices.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PricesError {
    /// It is larger than [`MOST_BYTES`].
    #[error("a list of prices is at most {} KiB; this one has {} KiB", MOST_BYTES >> 10, .0 >> 10)]
    TooLarge(usize),
    /// It is no table or no JSON of this form.
    #[error(
        "{0}; a list of prices is CSV with the columns card, per_hour and, if known, currency, date, source, or JSON of the \
         same rows: [{{\"card\": \"H100 SXM\", \"per_hour\": 2.5, \"currency\": \"USD\", \"date\": \"2026-11-01\"}}]"
    )]
    Form(String),
    /// A card that is not known.
    #[error("row {row}: {error}")]
    Card {
        /// Number of the row, from 1, without the header.
        row: usize,
        /// Reason.
        error: DeviceError,
    },
    /// A price that is none.
    #[error("row {row}: the price of {card} is {value}; it must be 0 or more")]
    Value {
        /// Number of the row, from 1, without the header.
        row: usize,
        /// The card.
        card: &'static str,
        /// What stands there.
        value: f64,
    },
    /// A card with two prices.
    #[error("row {row}: {card} has a price already; keep the one that you pay")]
    Twice {
        /// Number of the row, from 1, without the header.
        row: usize,
        /// The card.
        card: &'static str,
    },
    /// Prices that cannot be compared.
    #[error("row {row}: prices are in {first} and in {other}; a list has one currency")]
    Currencies {
        /// Number of the row, from 1, without the header.
        row: usize,
        /// Currency of the rows before.
        first: String,
        /// Currency of this row.
        other: String,
    },
}

impl Prices {
    /// Reads a list: JSON if it begins with a bracket, else CSV with a header.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn read(text: &str) -> Result<Self, PricesError> {
        if text.len() > MOST_BYTES {
            return Err(PricesError::TooLarge(text.len()));
        }
        // Spreadsheets write a byte order mark.
        let text = text.trim_start_matches('\u{feff}').trim();
        let rows: Vec<Price> = if text.is_empty() {
            Vec::new()
        } else if text.starts_with(['[', '{']) {
            serde_json::from_str(text).map_err(|error| PricesError::Form(error.to_string()))?
        } else {
            let mut reader = csv::ReaderBuilder::new()
                .trim(csv::Trim::All)
                .comment(Some(b'#'))
                .from_reader(text.as_bytes());
            let rows: Result<_, _> = reader.deserialize().collect();
            rows.map_err(|error| PricesError::Form(error.to_string()))?
        };
        Self::of(rows)
    }

    /// Checks rows.
    ///
    /// # Errors
    /// See [`PricesError`].
    pub fn of(rows: Vec<Price>) -> Result<Self, PricesError> {
        let mut prices = Self::default();
        for (at, mut price) in rows.into_iter().enumerate() {
            let row = at + 1;
            let device = Device::by_name(&price.card).map_err(|error| PricesError::Card { row, error })?;
            if !(price.per_hour >= 0.0 && price.per_hour.is_finite()) {
                return Err(PricesError::Value {
                    row,
                    card: device.name,
                    value: price.per_hour,
                });
            }
            if prices.per_hour(device).is_some() {
                return Err(PricesError::Twice { row, card: device.name });
            }
            // An empty cell of a table is no word.
            for word in [&mut price.currency, &mut price.date, &mut price.source] {
                *word = word.take().filter(|word| !word.trim().is_empty());
            }
            if let (Some(first), Some(other)) = (prices.currency(), &price.currency)
                && first != other
            {
                return Err(PricesError::Currencies {
                    row,
                    first: first.to_owned(),
                    other: other.clone(),
                });
            }
            price.card = device.name.to_owned();
            prices.0.push((device, price));
        }
        Ok(prices)
    }

    /// Sets or removes the price of a card, as of `date`.
    pub fn set(&mut self, device: &'static Device, per_hour: Option<f64>, date: Option<String>) {
        let currency = self.currency().map(str::to_owned);
        self.0.retain(|(known, _)| known.name != device.name);
        if let Some(per_hour) = per_hour {
            let price = Price {
                card: device.name.to_owned(),
                per_hour,
                currency,
                date,
                source: None,
            };
            self.0.push((device, price));
        }
    }

    /// Price of a card for an hour, if it is known.
    pub fn per_hour(&self, device: &Device) -> Option<f64> {
        self.row(device).map(|price| price.per_hour)
    }

    /// Row of a card, if it has one.
    pub fn row(&self, device: &Device) -> Option<&Price> {
        let found = self.0.iter().find(|(known, _)| known.name == device.name);
        found.map(|(_, price)| price)
    }

    /// The currency, if a row names it.
    pub fn currency(&self) -> Option<&str> {
        self.0.iter().find_map(|(_, price)| price.currency.as_deref())
    }

    /// Cards with a price, in the order of the list.
    pub fn cards(&self) -> impl Iterator<Item = &'static Device> {
        self.0.iter().map(|(device, _)| *device)
    }

    /// Rows of the list.
    pub fn rows(&self) -> impl Iterator<Item = &Price> {
        self.0.iter().map(|(_, price)| price)
    }

    /// First and last day of the prices; `None` if no row has one.
    pub fn days(&self) -> Option<[&str; 2]> {
        let all = || self.rows().filter_map(|price| price.date.as_deref());
        Some([all().min()?, all().max()?])
    }

    /// Returns true if no card has a price.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The list as JSON, as [`Self::read`] reads it.
    pub fn to_json(&self) -> String {
        let rows: Vec<&Price> = self.rows().collect();
        // Rows of text and finite numbers always serialize.
        serde_json::to_string(&rows).unwrap_or_default()
    }

    /// The list as CSV, as [`Self::read`] reads it.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        // All columns in each row: a table has no row without them. Memory takes all that is written.
        let _ = writer.write_record(["card", "per_hour", "currency", "date", "source"]);
        for price in self.rows() {
            let word = |word: &Option<String>| word.clone().unwrap_or_default();
            let cells = [
                price.card.clone(),
                price.per_hour.to_string(),
                word(&price.currency),
                word(&price.date),
                word(&price.source),
            ];
            let _ = writer.write_record(cells);
        }
        writer
            .into_inner()
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CSV: &str =
        "card,per_hour,currency,date,source\nH100,2.5,USD,2026-11-01,our contract\n\"RTX 4090\", 0.4,,,\n";

    #[test]
    fn a_table_and_json_say_the_same() {
        let prices = Prices::read(CSV).expect("it is a list");
        let h100 = Device::by_name("H100 SXM").expect("it is known");
        assert_eq!((prices.per_hour(h100), prices.currency()), (Some(2.5), Some("USD")));
        assert_eq!(
            prices.row(h100).and_then(|row| row.source.as_deref()),
            Some("our contract")
        );
        assert_eq!(Prices::read(&prices.to_json()), Ok(prices.clone()));
        assert_eq!(Prices::read(&prices.to_csv()), Ok(prices));
        let short = Prices::read("price_per_hour,card\n1.5,A100").expect("columns come in any order");
        assert_eq!(
            short.cards().map(|card| card.name).collect::<Vec<_>>(),
            ["A100 80GB SXM"]
        );
        assert!(Prices::read(" \n").expect("nothing is a list").is_empty());
    }

    #[test]
    fn what_is_wrong_names_its_row() {
        for (text, words) in [
            ("card,per_hour\nH100,2\nRTX 9999,1", "row 2: "),
            ("card,per_hour\nH100,-1", "row 1: the price of H100 SXM is -1"),
            ("card,per_hour\nH100,NaN", "is NaN"),
            (
                "card,per_hour\nH100,2\nH100 SXM,3",
                "row 2: H100 SXM has a price already",
            ),
            (
                "card,per_hour,currency\nH100,2,USD\nA100,2,EUR",
                "row 2: prices are in USD and in EUR",
            ),
            ("card,hourly\nH100,2", "columns card, per_hour"),
            ("[{\"card\": \"H100\"}]", "per_hour"),
            ("{}", "a list of prices is CSV"),
        ] {
            let error = Prices::read(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(matches!(
            Prices::read(&" ".repeat(MOST_BYTES + 1)),
            Err(PricesError::TooLarge(_))
        ));
    }

    #[test]
    fn a_price_is_set_and_removed() {
        let mut prices = Prices::read(CSV).expect("it is a list");
        let l4 = Device::by_name("L4").expect("it is known");
        prices.set(l4, Some(0.7), Some("2026-11-29".to_owned()));
        assert_eq!(prices.row(l4).and_then(|row| row.currency.as_deref()), Some("USD"));
        prices.set(l4, None, None);
        assert_eq!(Ok(prices), Prices::read(CSV));
    }

    proptest! {
        #[test]
        fn no_text_stops_the_reader(text in "\\PC{0,200}") {
            let _ = Prices::read(&text);
        }
    }
}
