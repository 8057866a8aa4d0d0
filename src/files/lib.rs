//! The files of a built page over HTTP, the same from every server of this repository.

use std::path::Path;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, VARY, X_CONTENT_TYPE_OPTIONS};
use tower_http::services::ServeDir;
use tower_http::set_header::SetResponseHeaderLayer;

/// Answers GET and HEAD with the files of `folder`, 404 for what is not there. Of a file that has `NAME.br` or
/// `NAME.gz` beside it, a client gets the one that its `Accept-Encoding` prefers. Each of these has an `ETag` of its
/// own, so that `If-None-Match` is answered with 304 for the very bytes that the client holds.
pub fn router(folder: &Path) -> Router {
    let files = ServeDir::new(folder).precompressed_br().precompressed_gzip();
    let header = |name, value| SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value));
    Router::new()
        .fallback_service(files)
        // A cache asks each time whether its copy is still right: some files keep their names when they change.
        .layer(header(CACHE_CONTROL, "no-cache"))
        .layer(header(X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // A 304 needs it too (RFC 9110, section 15.4.5), and `ServeDir` leaves it out there.
        .layer(header(VARY, "accept-encoding"))
}
