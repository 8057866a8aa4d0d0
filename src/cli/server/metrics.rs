//! The server's metrics for Prometheus.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::App;
use super::store::{Counts, Inserted};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request_ {
    method: String,
    /// Pattern of the route, not the requested path, so that clients cannot create labels.
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// Handle to the metrics.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<All>);

#[derive(Debug)]
struct All {
    registry: Registry,
    requests: Family<Request_, Counter>,
    seconds: Family<Route, Histogram>,
    uploads: Family<Outcome, Counter>,
    batch_sizes: Histogram,
    records: Gauge,
    quarantined: Gauge,
}

const SECONDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 10.0];
const BATCH_SIZES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

impl Metrics {
    /// Creates metrics, all at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("vramscope");
        let requests = Family::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let about = "Time from a request's head to the head of its answer";
        registry.register_with_unit("http_request_duration", about, Unit::Seconds, seconds.clone());
        let uploads = Family::default();
        registry.register(
            "uploads",
            "Records acknowledged, by what became of them",
            uploads.clone(),
        );
        let batch_sizes = Histogram::new(BATCH_SIZES);
        registry.register(
            "commit_records",
            "Records written in one transaction",
            batch_sizes.clone(),
        );
        let records = Gauge::default();
        registry.register("records", "Records in the database", records.clone());
        let quarantined = Gauge::default();
        registry.register("records_quarantined", "Records in quarantine", quarantined.clone());
        Self(Arc::new(All {
            registry,
            requests,
            seconds,
            uploads,
            batch_sizes,
            records,
            quarantined,
        }))
    }

    /// Counts the start of a transaction.
    pub fn committing(&self, records: usize) {
        self.0.batch_sizes.observe(records as f64);
    }

    /// Counts a record that has been committed.
    pub fn stored(&self, inserted: &Inserted) {
        let outcome = Outcome {
            outcome: match inserted {
                Inserted { new: false, .. } => "known",
                Inserted {
                    quarantine: Some(_), ..
                } => "quarantined",
                Inserted { .. } => "stored",
            },
        };
        self.0.uploads.get_or_create(&outcome).inc();
    }

    fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let of_request = Request_ {
            method: method.to_owned(),
            route: route.to_owned(),
            status,
        };
        self.0.requests.get_or_create(&of_request).inc();
        let route = Route {
            route: route.to_owned(),
        };
        self.0.seconds.get_or_create(&route).observe(took.as_secs_f64());
    }

    /// Formats all metrics for Prometheus.
    pub fn text(&self, counts: Counts) -> String {
        self.0.records.set(counts.records);
        self.0.quarantined.set(counts.quarantined);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }
}

/// Middleware that counts a request.
pub async fn count(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    // Nonstandard methods are counted together.
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS") => known.to_owned(),
        _ => "other".to_owned(),
    };
    let route = match request.extensions().get::<MatchedPath>() {
        Some(route) => route.as_str().to_owned(),
        None => "page".to_owned(),
    };
    let response = next.run(request).await;
    app.metrics
        .answered(&method, &route, response.status().as_u16(), begun.elapsed());
    response
}
