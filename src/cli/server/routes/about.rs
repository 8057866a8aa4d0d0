//! Routes about the server itself: health, metrics, documentation.

use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::server::App;
use crate::server::answer::{Problem, json};
use crate::server::gate::Caller;
use crate::server::store::Role;

/// `GET /healthz`: succeeds if the server can handle requests.
pub async fn healthz(State(app): State<App>) -> Result<Response, Problem> {
    app.store.ping().await?;
    let about = serde_json::json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "read_only": app.read_only,
    });
    Ok(json(about.to_string()))
}

/// `GET /metrics`.
pub async fn metrics(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    caller.must_be(Role::Read)?;
    let counts = app.store.counts().await?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(CONTENT_TYPE, kind)], app.metrics.text(counts)).into_response())
}

/// `GET /api/openapi.json`.
pub async fn openapi() -> Response {
    json(include_str!("openapi.json").into())
}

/// `GET /api/record.schema.json`.
pub async fn record_schema() -> Response {
    json(vramscope_benchmark::SCHEMA.into())
}
