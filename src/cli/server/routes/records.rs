//! Routes that receive and return records.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::LengthLimitError;
use serde::Deserialize;

use crate::records::{Checked, Refused};
use crate::server::answer::{Problem, json};
use crate::server::gate::Caller;
use crate::server::plausible::implausible;
use crate::server::store::{Filter, NewRecord, Role};
use crate::server::{App, store};

/// `POST /api/records`: stores a record and responds once it is on disk.
pub async fn upload(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Problem> {
    caller.must_be(Role::Write)?;
    must_be_writable(&app)?;
    must_be_json(request.headers())?;
    let (body, _held) = read(&app, request).await?;
    let record = new_record(body).await?;
    let id = record.id.clone();
    let inserted = app.writer.store(record).await?;
    let status = match (inserted.new, &inserted.quarantine) {
        (false, _) => "known",
        (true, None) => "stored",
        (true, Some(_)) => "quarantined",
    };
    let answer = serde_json::json!({ "id": id, "status": status, "reason": inserted.quarantine });
    let code = if inserted.new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((code, json(answer.to_string())).into_response())
}

/// Refuses to write where the server is read-only.
fn must_be_writable(app: &App) -> Result<(), Problem> {
    match app.read_only {
        true => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "this server is read-only; records are sent to the one that it is a copy of",
        )),
        false => Ok(()),
    }
}

fn must_be_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "a record is sent with `Content-Type: application/json`",
    ))
}

/// Reads the body within the limits of size and time; the returned permit holds its share of memory.
async fn read(app: &App, request: Request) -> Result<(Bytes, tokio::sync::SemaphorePermit<'_>), Problem> {
    let limit = app.max_record_bytes;
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("record too large: the limit is {limit} bytes"),
        )
    };
    let length = request.headers().get(CONTENT_LENGTH);
    let stated: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let bytes = stated.unwrap_or(limit);
    if bytes > limit {
        return Err(too_large());
    }
    let share = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX);
    let busy = || Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "too many large records at a time", 5);
    let held = tokio::time::timeout(app.patience, app.body_kib.acquire_many(share)).await;
    let held = held.map_err(|_| busy())?.map_err(|_| busy())?;
    let body = axum::body::to_bytes(request.into_body(), limit);
    match tokio::time::timeout(app.patience, body).await {
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the record did not arrive in {} s", app.patience.as_secs()),
        )),
        Ok(Ok(body)) => Ok((body, held)),
        Ok(Err(error)) => {
            let source = std::error::Error::source(&error);
            Err(match source.is_some_and(|source| source.is::<LengthLimitError>()) {
                true => too_large(),
                false => Problem::new(
                    StatusCode::BAD_REQUEST,
                    format!("the record did not arrive whole: {error}"),
                ),
            })
        }
    }
}

/// Size in bytes above which a body is parsed on another thread, so that it does not delay other requests.
const LARGE: usize = 128 << 10;

async fn new_record(body: Bytes) -> Result<NewRecord, Problem> {
    let broke = |_| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal server error while storing this record",
        )
    };
    match body.len() {
        ..LARGE => check(&body),
        _ => tokio::task::spawn_blocking(move || check(&body)).await.map_err(broke)?,
    }
}

fn check(body: &[u8]) -> Result<NewRecord, Problem> {
    let checked = Checked::read(body).map_err(|refused| {
        let status = match refused {
            Refused::NotJson(_) => StatusCode::BAD_REQUEST,
            Refused::NoRecord(_) => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Problem::new(status, refused.to_string())
    })?;
    let quarantine = implausible(&checked.record);
    Ok(NewRecord::of(checked, quarantine))
}

/// Query parameters of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Asked {
    device: Option<String>,
    backend: Option<String>,
    complete: Option<bool>,
    quarantined: bool,
    before: Option<i64>,
    limit: Option<u32>,
}

/// Default number of records in a list.
const USUAL_LIMIT: u32 = 100;
/// Largest number of records in a list.
const HIGHEST_LIMIT: u32 = 10_000;

/// `GET /api/records`: short descriptions of records, newest first.
pub async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(asked) = asked.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    caller.must_be(if asked.quarantined { Role::Admin } else { Role::Read })?;
    let limit = asked.limit.unwrap_or(USUAL_LIMIT);
    if !(1..=HIGHEST_LIMIT).contains(&limit) {
        let detail = format!("limit is {limit}; allowed: 1 to {HIGHEST_LIMIT}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let filter = Filter {
        device: asked.device,
        backend: asked.backend,
        complete: asked.complete,
        before: asked.before,
        limit: limit.into(),
    };
    if !asked.quarantined {
        return Ok(app.lists.get(&app.store, filter).await?.answer(&headers));
    }
    let doubted = app.store.quarantined(&filter).await?;
    // A list shorter than the limit is the last one.
    let next = doubted.last().filter(|_| doubted.len() as i64 == filter.limit);
    let list = serde_json::json!({ "records": doubted, "next": next.map(|last| last.seq) });
    Ok(json(list.to_string()))
}

/// `GET /api/records/{id}`: a whole record. Records never change, so clients may cache it.
pub async fn one(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.must_be(Role::Read)?;
    let found = find(&app, &id).await?;
    if found.quarantine.is_some() && caller.must_be(Role::Admin).is_err() {
        return Err(no_such());
    }
    let kept = [
        (ETAG, format!("\"{id}\"")),
        (CACHE_CONTROL, "private, max-age=31536000, immutable".into()),
    ];
    if headers
        .get(IF_NONE_MATCH)
        .is_some_and(|given| given.as_bytes() == kept[0].1.as_bytes())
    {
        return Ok((StatusCode::NOT_MODIFIED, kept).into_response());
    }
    Ok((kept, json(found.text)).into_response())
}

/// `GET /data/records/{id}.json`: a whole record under the path of `vramscope export`, which the page requests.
pub async fn file(
    app: State<App>,
    caller: Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = name.strip_suffix(".json").ok_or_else(no_such)?;
    one(app, caller, Path(id.to_owned()), headers).await
}

async fn find(app: &App, id: &str) -> Result<store::Found, Problem> {
    let is_id = id.len() == 64 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match is_id {
        true => app.store.get(id).await?.ok_or_else(no_such),
        false => Err(no_such()),
    }
}

fn no_such() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no record has this id here")
}

/// `POST /api/records/{id}/release`: releases a record from quarantine.
pub async fn release(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.must_be(Role::Admin)?;
    must_be_writable(&app)?;
    find(&app, &id).await?;
    let released = app.store.release(&id).await?;
    Ok(json(serde_json::json!({ "id": id, "released": released }).to_string()))
}
