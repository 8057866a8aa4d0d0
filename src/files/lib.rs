//! Serves the files of a built page over HTTP, in the same way for every server of this repository.

use std::path::Path;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, VARY, X_CONTENT_TYPE_OPTIONS};
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

/// Answers GET and HEAD with the files of `folder`, and 404 if there is no such file. If `NAME.br` or `NAME.gz` exists
/// beside a file, clients get the one that their `Accept-Encoding` prefers. Each encoding has its own `ETag`, so that
/// `If-None-Match` gives 304 only for the exact bytes that the client has.
pub fn router(folder: &Path) -> Router {
    let files = ServeDir::new(folder).precompressed_br().precompressed_gzip();
    let header = |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    Router::new()
        .fallback_service(files)
        // Caches must revalidate, since some files keep their names when they change.
        .layer(header(CACHE_CONTROL, "no-cache"))
        .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // A 304 needs this header too (RFC 9110, section 15.4.5), and `ServeDir` omits it there.
        .layer(header(VARY, "accept-encoding"))
}
