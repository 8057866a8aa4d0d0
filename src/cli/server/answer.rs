//! Error responses, as problem details of RFC 9457.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::store::StoreError;

/// Error response with the reason and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    detail: String,
    retry_after_secs: Option<u64>,
}

impl Problem {
    /// A problem with this status and detail.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after_secs: None,
        }
    }

    /// A problem that disappears by itself after about this many seconds.
    pub fn passing(status: StatusCode, detail: impl Into<String>, retry_after_secs: u64) -> Self {
        Self {
            retry_after_secs: Some(retry_after_secs.max(1)),
            ..Self::new(status, detail)
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        // The database's own message may name folders of this machine, so only the owner sees it.
        anstream::eprintln!("{error}");
        match error {
            StoreError::Full(_) => Self::passing(
                StatusCode::INSUFFICIENT_STORAGE,
                "the server has no room left; nothing was stored",
                60,
            ),
            StoreError::Unavailable(_) => Self::passing(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server's database does not answer; nothing was stored",
                5,
            ),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let body = json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after_secs {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        (self.status, headers, body.to_string()).into_response()
    }
}

/// A response with JSON that is already serialized.
pub fn json(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
