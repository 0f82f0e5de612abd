//! Which address gives what. Every request comes through here: first the guard, then the page or the data.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::json;

use crate::answers::{self, heavy};
use crate::assets::Asset;
use crate::error::Refusal;
use crate::guard::{Guard, HEADERS};
use crate::query::{LONGEST, Query};
use crate::store::Store;
use crate::tfprof;
use crate::timeline::event::{Same, Way};
use crate::timeline::tile::{MOST_LEVEL, Place};
use crate::timeline::{area, event, frame, overview, tile};

/// Hits that one answer holds at the most.
const MOST_HITS: usize = 5_000;
/// Buckets of the overview.
const MOST_BUCKETS: usize = 4_096;
/// Longer texts are not searched for.
const LONGEST_TEXT: usize = 1_000;

const JSON: &str = "application/json";

/// What all requests share.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<Store>,
    pub(crate) guard: Guard,
}

/// An answer before it is dressed.
struct Reply {
    kind: &'static str,
    body: Bytes,
    /// What it is called when it is saved.
    file: Option<String>,
}

impl Reply {
    fn json(body: impl Into<Bytes>) -> Self {
        Reply { kind: JSON, body: body.into(), file: None }
    }

    fn value(value: &serde_json::Value) -> Self {
        Reply::json(answers::bytes(value))
    }
}

/// Answers any request.
pub(crate) async fn handle(State(app): State<App>, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let head = parts.method == Method::HEAD;
    let path = parts.uri.path();
    let is_api = path == "/api" || path.starts_with("/api/");
    let mut response = match admit(&app, &parts.method, &parts.headers, path, parts.uri.query(), is_api) {
        Err(refusal) => refused(&refusal),
        Ok(query) if is_api => match data(&app, path, &query).await {
            Ok(reply) => replied(reply),
            Err(refusal) => refused(&refusal),
        },
        Ok(_) => page(path, &parts.headers),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

fn admit(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    path: &str,
    query: Option<&str>,
    is_api: bool,
) -> Result<Query, Refusal> {
    app.guard.admit(headers, is_api)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::Method);
    }
    if path.len() > LONGEST {
        return Err(Refusal::TooLong);
    }
    if !is_api {
        return Ok(Query::default());
    }
    let query = Query::of(query)?;
    app.guard.admit_token(headers, query.text("token"))?;
    Ok(query)
}

/// A file of the page.
fn page(path: &str, headers: &HeaderMap) -> Response<Body> {
    let Some(asset) = Asset::at(path) else { return refused(&Refusal::Missing("page")) };
    let says = |name, wanted: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains(wanted))
    };
    let mut response = Response::new(Body::empty());
    let told = response.headers_mut();
    told.insert(ETAG, HeaderValue::from_static(asset.etag));
    told.insert(VARY, HeaderValue::from_static("accept-encoding"));
    let lasts = if asset.is_immutable() { "public, max-age=31536000, immutable" } else { "no-cache" };
    told.insert(CACHE_CONTROL, HeaderValue::from_static(lasts));
    if says(IF_NONE_MATCH, asset.etag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    told.insert(CONTENT_TYPE, HeaderValue::from_static(asset.mime));
    let body = if says(ACCEPT_ENCODING, "gzip") {
        told.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        Bytes::from_static(asset.gzip)
    } else {
        Bytes::from(asset.inflated())
    };
    told.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    *response.body_mut() = Body::from(body);
    response
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = replied(Reply::value(&refusal.body()));
    *response.status_mut() = refusal.status();
    if matches!(refusal, Refusal::Method) {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

fn replied(reply: Reply) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.kind));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(reply.body.len()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let saved =
        reply.file.and_then(|file| HeaderValue::try_from(format!("attachment; filename=\"{file}\"")).ok());
    if let Some(saved) = saved {
        headers.insert(CONTENT_DISPOSITION, saved);
    }
    *response.body_mut() = Body::from(reply.body);
    response
}

async fn data(app: &App, path: &str, query: &Query) -> Result<Reply, Refusal> {
    let parts: Vec<&str> = path.split('/').skip(2).collect();
    match parts[..] {
        ["sessions"] => Ok(Reply::value(&app.store.list())),
        ["categories"] => Ok(Reply::value(&answers::categories())),
        ["compare"] => {
            let (base, new) = (query.number("base")?, query.number("new")?);
            let (base, new) = (app.store.run(base).await?, app.store.run(new).await?);
            heavy(move || Ok(Reply::value(&answers::comparison(&base, &new)))).await
        }
        ["s", id, ref rest @ ..] => {
            let id = id.parse().map_err(|_| Refusal::Missing("session"))?;
            session(app, id, rest, query).await
        }
        _ => Err(Refusal::Missing("address")),
    }
}

async fn session(app: &App, id: usize, rest: &[&str], query: &Query) -> Result<Reply, Refusal> {
    // Those who come to a session anew begin with one of these.
    let fresh = matches!(rest, ["report" | "timeline" | "info"]);
    match *rest {
        ["report"] => {
            let opened = app.store.open(id, fresh).await?;
            heavy(move || answers::report(&opened)).await.map(Reply::json)
        }
        ["info"] => {
            let opened = app.store.open(id, fresh).await?;
            heavy(move || answers::information(&opened)).await.map(Reply::json)
        }
        ["view", name] => table(app, id, name, query, false).await,
        ["csv", name] => table(app, id, name, query, true).await,
        ["memory_at"] => {
            let (allocator, at) = (query.number("allocator")?, query.ns("t_ns")?);
            let opened = app.store.open(id, fresh).await?;
            heavy(move || answers::memory_at(&opened, allocator, at).map(|value| Reply::value(&value))).await
        }
        ["model", ref rest @ ..] => model(app, id, rest, query).await,
        ["timeline"] => {
            let opened = app.store.open(id, fresh).await?;
            heavy(move || answers::timeline(&opened)).await.map(Reply::json)
        }
        ["tiles"] => tiles(app, id, query).await,
        ["event"] => {
            let (track, number) = (query.number("track")?, query.number("event")?);
            let opened = app.store.open(id, fresh).await?;
            heavy(move || {
                let found = event::details(&opened.model, track, number);
                found.map(|found| Reply::value(&found)).ok_or(Refusal::Missing("event"))
            })
            .await
        }
        ["neighbour"] => neighbour(app, id, query).await,
        ["at"] => {
            let (track, row, at) = (query.number("track")?, query.number("row")?, query.ns("t_ns")?);
            let tolerance =
                if query.text("tolerance_ns").is_some() { query.ns("tolerance_ns")?.max(0) } else { 0 };
            let opened = app.store.open(id, fresh).await?;
            heavy(move || {
                opened.model.track(track).ok_or(Refusal::Missing("track"))?;
                Ok(Reply::value(&json!({"event": event::at(&opened.model, track, row, at, tolerance)})))
            })
            .await
        }
        ["search"] => search(app, id, query).await,
        ["area"] => {
            let (from, to, tracks) = (query.ns("start_ns")?, query.ns("end_ns")?, query.tracks("tracks")?);
            let opened = app.store.open(id, fresh).await?;
            heavy(move || Ok(Reply::value(&area::answer(&opened.model, from, to, tracks.as_deref())))).await
        }
        ["overview"] => {
            let buckets = query.number_or("buckets", 1_024_usize)?.clamp(1, MOST_BUCKETS);
            let opened = app.store.open(id, fresh).await?;
            heavy(move || Ok(Reply::value(&overview::answer(&opened.model, buckets)))).await
        }
        _ => Err(Refusal::Missing("address")),
    }
}

async fn table(app: &App, id: usize, name: &str, query: &Query, csv: bool) -> Result<Reply, Refusal> {
    let (name, by) = (name.to_owned(), query.text("by").map(str::to_owned));
    let opened = app.store.open(id, false).await?;
    heavy(move || {
        let body = answers::view(&opened, &name, by.as_deref(), csv)?;
        Ok(match csv {
            true => Reply { kind: "text/csv; charset=utf-8", body, file: Some(format!("{name}.csv")) },
            false => Reply::json(body),
        })
    })
    .await
}

/// The model behind runs of classic TensorFlow.
async fn model(app: &App, id: usize, rest: &[&str], query: &Query) -> Result<Reply, Refusal> {
    let what = match rest {
        [] => "",
        [only] => only,
        _ => return Err(Refusal::Missing("address")),
    };
    let (what, query) = (what.to_owned(), query.clone());
    let opened = app.store.open(id, false).await?;
    heavy(move || match what.as_str() {
        "" => tfprof::about(&opened).map(Reply::json),
        "view" => tfprof::view(&opened, &query).map(|value| Reply::value(&value)),
        "node" => tfprof::node(&opened, &query).map(|value| Reply::value(&value)),
        "find" => tfprof::find(&opened, &query).map(|value| Reply::value(&value)),
        "variables" => tfprof::variables(&opened).map(Reply::json),
        _ => Err(Refusal::Missing("address")),
    })
    .await
}

async fn tiles(app: &App, id: usize, query: &Query) -> Result<Reply, Refusal> {
    let (level, number): (u8, u64) = (query.number("level")?, query.number("tile")?);
    let tracks = query.tracks("tracks")?.unwrap_or_default();
    if level > MOST_LEVEL {
        return Err(Refusal::Query("level", level.to_string()));
    }
    let place = Place { level, tile: number };
    let opened = app.store.open(id, false).await?;
    heavy(move || {
        let model = &opened.model;
        if tracks.iter().any(|&id| model.track(id).is_none()) {
            return Err(Refusal::Missing("track"));
        }
        let body = frame::write(model, place, &tile::spans(model, place, &tracks)).into();
        Ok(Reply { kind: "application/octet-stream", body, file: None })
    })
    .await
}

async fn neighbour(app: &App, id: usize, query: &Query) -> Result<Reply, Refusal> {
    let (track, number) = (query.number("track")?, query.number("event")?);
    let way = match query.text("dir") {
        Some("next") => Way::Next,
        Some("previous") => Way::Previous,
        other => return Err(Refusal::Query("dir", other.unwrap_or("").chars().take(80).collect())),
    };
    let same = match query.text("same") {
        Some("row") => Same::Row,
        Some("name") | None => Same::Name,
        Some(other) => return Err(Refusal::Query("same", other.chars().take(80).collect())),
    };
    let opened = app.store.open(id, false).await?;
    heavy(move || {
        event::hit(&opened.model, track, number).ok_or(Refusal::Missing("event"))?;
        let found = event::neighbour(&opened.model, track, number, way, same);
        Ok(Reply::value(&json!({"event": found})))
    })
    .await
}

async fn search(app: &App, id: usize, query: &Query) -> Result<Reply, Refusal> {
    let text = query.text("q").unwrap_or("").to_owned();
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(Refusal::Query("q", text.chars().take(80).collect()));
    }
    let offset = query.number_or("offset", 0_usize)?;
    let limit = query.number_or("limit", 500_usize)?.min(MOST_HITS);
    let opened = app.store.open(id, false).await?;
    heavy(move || Ok(Reply::value(&opened.search(&text)?.page(&opened.model, offset, limit)))).await
}
