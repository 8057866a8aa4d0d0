//! Routes of the server.

mod about;
mod records;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::answer::Problem;
use super::page::Page;
use super::{App, gate, metrics};

/// Creates the router with all routes.
pub(super) fn router(app: App, page: Option<Page>) -> Router {
    let api = Router::new()
        .route("/api/records", get(records::list).post(records::upload))
        .route("/api/records/{id}", get(records::one))
        .route("/api/records/{id}/release", post(records::release))
        // The page requests records under these paths, both from this server and from files of `vramscope export`.
        .route("/data/records.json", get(records::list))
        .route("/data/records/{name}", get(records::file))
        .route("/metrics", get(about::metrics))
        .layer(from_fn_with_state(app.clone(), gate::pass));
    let all = api
        .route("/api/openapi.json", get(about::openapi))
        .route("/api/record.schema.json", get(about::record_schema))
        .route("/healthz", get(about::healthz))
        .route("/api/{*rest}", axum::routing::any(not_found))
        .method_not_allowed_fallback(method_not_allowed);
    let all = all.layer(from_fn(api_headers));
    let all = match page {
        Some(page) => all.fallback_service(files(page)),
        None => all.fallback(not_found),
    };
    all.layer(CatchPanicLayer::custom(broke))
        .layer(from_fn_with_state(app.clone(), in_time))
        .layer(from_fn_with_state(app.clone(), metrics::count))
        .with_state(app)
}

/// Creates the router of the page's files alone.
pub(super) fn files(page: Page) -> Router {
    vramscope_files::router(&page.folder).layer(from_fn_with_state(page, page_headers))
}

/// Middleware that limits the time of a request, whatever it waits for: its body, memory for it, the database.
async fn in_time(State(app): State<App>, request: Request, next: Next) -> Result<Response, Problem> {
    // An upload may wait as long as `patience` for memory, and again for its body; the third is for the work itself.
    let limit = app.patience * 3;
    tokio::time::timeout(limit, next.run(request)).await.map_err(|_| {
        let detail = format!("the server did not get to this in {} s", limit.as_secs());
        Problem::passing(StatusCode::SERVICE_UNAVAILABLE, detail, 5)
    })
}

async fn not_found() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "nothing is here; /api/openapi.json says what is")
}

async fn method_not_allowed() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method")
}

/// Response to a panic: the owner sees its details, the client only that it is not to blame.
fn broke(_: Box<dyn std::any::Any + Send>) -> Response {
    use axum::response::IntoResponse;
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error while answering this request",
    )
    .into_response()
}

/// Middleware for API responses, which are data: browsers must not display them as documents, run them or guess their
/// type.
async fn api_headers(request: Request, next: Next) -> Response {
    const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(policy, HeaderValue::from_static("same-origin"));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Middleware for the page, which states its own policy; its files may be embedded elsewhere, as in a wiki.
async fn page_headers(State(page): State<Page>, request: Request, next: Next) -> Response {
    let policy = page.policy(request.uri().path());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(policy, HeaderValue::from_static("cross-origin"));
    response
}
