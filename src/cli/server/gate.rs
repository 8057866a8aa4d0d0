//! Authenticates and rate-limits requests.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::extract::{Extension, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::answer::Problem;
use super::store::{Role, StoreError};
use super::{App, access};

/// IP address of the client.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// A client: its role, without which it may do nothing, and whether it sent a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    role: Option<Role>,
    has_token: bool,
}

impl Caller {
    /// Requires a role.
    ///
    /// # Errors
    /// 401 without a token known here, 403 with a token that allows less.
    pub fn must_be(self, wanted: Role) -> Result<(), Problem> {
        match self.role {
            Some(role) if role >= wanted => Ok(()),
            _ if self.has_token => Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!("this needs a token of the role {wanted}"),
            )),
            _ => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                format!("this needs a token of the role {wanted}: `Authorization: Bearer TOKEN`"),
            )),
        }
    }
}

/// Key by which requests are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Counted {
    Token(String),
    Address(IpAddr),
}

type Limiter = RateLimiter<Counted, HashMapStateStore<Counted>, MonotonicClock, NoOpMiddleware<Instant>>;

/// Rate limits, and recently used tokens.
pub struct Gate {
    closed: bool,
    limiter: Option<Limiter>,
    clock: MonotonicClock,
    known: Mutex<HashMap<String, (Role, Instant)>>,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate")
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// Longest time for which a revoked token is still accepted.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Number of tokens and addresses above which inactive ones are dropped from the counters.
const COUNTED: usize = 50_000;

impl Gate {
    /// Creates a gate; if `closed`, reading requires a token too.
    pub fn new(closed: bool, per_minute: Option<NonZeroU32>) -> Self {
        Self {
            closed,
            limiter: per_minute.map(|n| RateLimiter::hashmap_with_clock(Quota::per_minute(n), MonotonicClock)),
            clock: MonotonicClock,
            known: Mutex::default(),
        }
    }

    /// Counts one request.
    fn count(&self, who: &Counted) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        if limiter.len() > COUNTED {
            limiter.retain_recent();
        }
        limiter.check_key(who).map_err(|early| {
            let wait = early.wait_time_from(self.clock.now());
            Problem::passing(
                StatusCode::TOO_MANY_REQUESTS,
                "too many requests; the server says in Retry-After when to come back",
                wait.as_secs() + 1,
            )
        })
    }

    fn remembered(&self, hash: &str) -> Option<Role> {
        let known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (role, seen) = known.get(hash)?;
        (seen.elapsed() < REMEMBERED).then_some(*role)
    }

    fn remember(&self, hash: &str, role: Option<Role>) {
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match role {
            Some(role) => known.insert(hash.to_owned(), (role, Instant::now())),
            None => known.remove(hash),
        };
    }
}

/// Middleware that authenticates and counts a request; routes decide what the client may do.
pub async fn pass(
    State(app): State<App>,
    Extension(Peer(peer)): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let hash = bearer(request.headers()).map(access::hash);
    let remembered = hash
        .as_deref()
        .and_then(|hash| Some((hash, app.gate.remembered(hash)?)));
    let role = match remembered {
        Some((hash, role)) => {
            app.gate.count(&Counted::Token(hash.to_owned()))?;
            Some(role)
        }
        // Requests with an unknown token are counted by address, which limits guessing.
        None => {
            app.gate.count(&Counted::Address(network(peer)))?;
            look_up(&app, hash.as_deref()).await?
        }
    };
    let has_token = role.is_some();
    if hash.is_some() && !has_token {
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "unknown or revoked token"));
    }
    let open_to_all = (!app.gate.closed).then_some(Role::Read);
    request.extensions_mut().insert(Caller {
        role: role.or(open_to_all),
        has_token,
    });
    Ok(next.run(request).await)
}

async fn look_up(app: &App, hash: Option<&str>) -> Result<Option<Role>, StoreError> {
    let Some(hash) = hash else {
        return Ok(None);
    };
    let role = app.store.token(hash).await?.map(|token| token.role);
    app.gate.remember(hash, role);
    Ok(role)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok().unwrap_or_default();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Some(if scheme.eq_ignore_ascii_case("bearer") {
        token.trim()
    } else {
        ""
    })
}

/// Network of an address: a customer usually has a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.into(),
            None => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        },
    }
}
