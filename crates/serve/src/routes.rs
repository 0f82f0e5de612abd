//! Which address gives what: the guard first, then the page or the data.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, SET_COOKIE, VARY,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::json;

use crate::answers::{self, heavy};
use crate::assets::Asset;
use crate::curves;
use crate::error::Refusal;
use crate::fleet;
use crate::guard::{Guard, HEADERS};
use crate::home;
use crate::query::{LONGEST, Query};
use crate::sql;
use crate::store::{Opened, Store, Timeline};
use crate::tfprof;
use crate::timeline::event::{Same, Way};
use crate::timeline::model::Model;
use crate::timeline::tile::{MOST_LEVEL, TileAddress};
use crate::timeline::{area, collectives, critical, event, frame, overview, tile};

/// Maximum number of hits in one answer.
const MOST_HITS: usize = 5_000;
/// Maximum number of buckets in the overview.
const MOST_BUCKETS: usize = 4_096;
/// Maximum length of a search text.
const LONGEST_TEXT: usize = 1_000;

const JSON: &str = "application/json";

/// What all requests share.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) store: Arc<Store>,
    pub(crate) guard: Guard,
}

/// An answer before headers are added.
pub(crate) struct Reply {
    pub(crate) kind: &'static str,
    pub(crate) body: Bytes,
    /// Its file name when it is saved.
    pub(crate) file: Option<String>,
}

impl Reply {
    pub(crate) fn json(body: impl Into<Bytes>) -> Self {
        Reply { kind: JSON, body: body.into(), file: None }
    }

    pub(crate) fn value(value: &serde_json::Value) -> Self {
        Reply::json(answers::bytes(value))
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let saved =
            self.file.and_then(|file| HeaderValue::try_from(format!("attachment; filename=\"{file}\"")).ok());
        if let Some(saved) = saved {
            headers.insert(CONTENT_DISPOSITION, saved);
        }
        *response.body_mut() = Body::from(self.body);
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let mut response = Reply::value(&self.body()).into_response();
        *response.status_mut() = self.status();
        if matches!(self, Refusal::Method) {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

/// What a request for data gets.
pub(crate) type Answer = Result<Reply, Refusal>;

/// All addresses, behind the guard.
pub(crate) fn router(app: App) -> Router {
    let session = Router::new()
        .route("/report", get(report))
        .route("/info", get(info))
        .route("/view/{name}", get(view))
        .route("/csv/{name}", get(csv))
        .route("/memory_at", get(memory_at))
        .route("/sql", get(sql_answer))
        .route("/model", get(model))
        .route("/model/view", get(model_view))
        .route("/model/node", get(model_node))
        .route("/model/find", get(model_find))
        .route("/model/variables", get(model_variables))
        .route("/timeline", get(timeline))
        .route("/tiles", get(tiles))
        .route("/event", get(details))
        .route("/neighbour", get(neighbour))
        .route("/at", get(at))
        .route("/search", get(search))
        .route("/area", get(sums))
        .route("/collectives", get(ranks))
        .route("/critical", get(critical_path))
        .route("/overview", get(minimap));
    Router::new()
        .route("/api/sessions", get(sessions))
        .route("/api/categories", get(categories))
        .route("/api/views", get(views))
        .route("/api/sql", get(sql_tables))
        .route("/api/compare", get(compare))
        .nest("/api/s/{id}", session)
        .nest("/api/curves", curves::routes::router())
        .nest("/api/fleet", fleet::routes::router())
        .merge(home::router())
        .fallback(page)
        .layer(from_fn_with_state(app.clone(), guarded))
        .with_state(app)
}

fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Lets a request through, or refuses it; whatever comes of it forbids what the page does not need.
async fn guarded(State(app): State<App>, request: Request<Body>, next: Next) -> Response<Body> {
    let head = request.method() == Method::HEAD;
    // The first visit to the page brings the token in its address; the cookie lets later ones do without.
    let page = !is_api(request.uri().path());
    let query = Query::of(request.uri()).unwrap_or_default();
    let cookie = app.guard.cookie(query.text("token")).filter(|_| page);
    let mut response = match admit(&app, request.method(), request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let headers = response.headers_mut();
    if let Some(cookie) = cookie {
        headers.insert(SET_COOKIE, cookie);
    }
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if head {
        *response.body_mut() = Body::empty();
    }
    response
}

fn admit(app: &App, method: &Method, headers: &HeaderMap, address: &Uri) -> Result<(), Refusal> {
    let is_api = is_api(address.path());
    app.guard.admit(headers, is_api)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::Method);
    }
    if address.path().len() > LONGEST {
        return Err(Refusal::TooLong);
    }
    if !is_api {
        return Ok(());
    }
    let query = Query::of(address)?;
    app.guard.admit_token(headers, query.text("token"))
}

/// A part of the address, decoded; an address that cannot be decoded names nothing.
async fn part_of_address(parts: &mut Parts, app: &App, name: &str) -> Option<String> {
    let all = RawPathParams::from_request_parts(parts, app).await.ok()?;
    all.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// The session that an address names.
struct Session {
    id: usize,
    app: App,
}

impl FromRequestParts<App> for Session {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let id = part_of_address(parts, app, "id").await.and_then(|id| id.parse().ok());
        Ok(Session { id: id.ok_or(Refusal::Missing("session"))?, app: app.clone() })
    }
}

impl Session {
    /// For those who come to it anew: it is read again where its files changed.
    async fn fresh(&self) -> Result<Arc<Opened>, Refusal> {
        self.app.store.open(self.id, true).await
    }

    async fn open(&self) -> Result<Arc<Opened>, Refusal> {
        self.app.store.open(self.id, false).await
    }

    /// Its traces.
    async fn timeline(&self) -> Result<Arc<Timeline>, Refusal> {
        self.app.store.timeline(self.id, false).await
    }
}

/// The view that an address names.
struct ViewName(String);

impl FromRequestParts<App> for ViewName {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        part_of_address(parts, app, "name").await.map(ViewName).ok_or(Refusal::Missing("view"))
    }
}

impl FromRequestParts<App> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        Query::of(&parts.uri)
    }
}

/// A file of the page; everything that has no other address comes here.
async fn page(address: Uri, headers: HeaderMap) -> Response<Body> {
    let path = address.path();
    if is_api(path) {
        return Refusal::Missing("address").into_response();
    }
    let Some(asset) = Asset::at(path) else { return Refusal::Missing("page").into_response() };
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

async fn sessions(State(app): State<App>) -> Answer {
    heavy(move || Ok(Reply::json(app.store.list()))).await
}

async fn categories() -> Reply {
    Reply::value(&answers::categories())
}

async fn views() -> Reply {
    Reply::value(&answers::views())
}

async fn compare(State(app): State<App>, query: Query) -> Answer {
    let (base, new) = (query.number("base")?, query.number("new")?);
    let (base, new) = (app.store.run(base).await?, app.store.run(new).await?);
    heavy(move || Ok(Reply::value(&answers::comparison(&base, &new)))).await
}

async fn report(session: Session) -> Answer {
    let opened = session.fresh().await?;
    heavy(move || answers::report(&opened)).await.map(Reply::json)
}

async fn info(session: Session) -> Answer {
    let opened = session.fresh().await?;
    heavy(move || answers::information(&opened)).await.map(Reply::json)
}

async fn view(session: Session, ViewName(name): ViewName, query: Query) -> Answer {
    let by = query.text("by").map(str::to_owned);
    let opened = session.open().await?;
    heavy(move || answers::view(&opened, &name, by.as_deref(), false)).await.map(Reply::json)
}

async fn csv(session: Session, ViewName(name): ViewName, query: Query) -> Answer {
    let by = query.text("by").map(str::to_owned);
    let opened = session.open().await?;
    heavy(move || {
        let body = answers::view(&opened, &name, by.as_deref(), true)?;
        Ok(Reply { kind: "text/csv; charset=utf-8", body, file: Some(format!("{name}.csv")) })
    })
    .await
}

async fn memory_at(session: Session, query: Query) -> Answer {
    let (allocator, at) = (query.number("allocator")?, query.ns("t_ns")?);
    let opened = session.timeline().await?;
    heavy(move || answers::memory_at(&opened, allocator, at).map(|value| Reply::value(&value))).await
}

/// A query of the console.
async fn sql_answer(session: Session, query: Query) -> Answer {
    let text = query.text("q").unwrap_or("").to_owned();
    let opened = session.timeline().await?;
    heavy(move || sql::answer(opened.database(), &text).map(|value| Reply::value(&value))).await
}

async fn sql_tables() -> Reply {
    Reply::value(&sql::described())
}

/// The model behind runs of classic TensorFlow.
async fn model(session: Session) -> Answer {
    let opened = session.open().await?;
    heavy(move || tfprof::about(&opened).map(Reply::json)).await
}

async fn model_view(session: Session, query: Query) -> Answer {
    let opened = session.open().await?;
    heavy(move || tfprof::view(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_node(session: Session, query: Query) -> Answer {
    let opened = session.open().await?;
    heavy(move || tfprof::node(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_find(session: Session, query: Query) -> Answer {
    let opened = session.open().await?;
    heavy(move || tfprof::find(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_variables(session: Session) -> Answer {
    let opened = session.open().await?;
    heavy(move || tfprof::variables(&opened).map(Reply::json)).await
}

async fn timeline(session: Session, query: Query) -> Answer {
    let opened = session.fresh().await?;
    let timeline = session.timeline().await?;
    heavy(move || answers::timeline(&opened, on_clock(&timeline, &query))).await.map(Reply::json)
}

/// The timeline on the clock that a request asks for.
fn on_clock<'t>(timeline: &'t Timeline, query: &Query) -> &'t Model {
    timeline.on(query.text("clock"))
}

async fn tiles(session: Session, query: Query) -> Answer {
    let (level, number): (u8, u64) = (query.number("level")?, query.number("tile")?);
    let tracks = query.tracks("tracks")?.unwrap_or_default();
    if level > MOST_LEVEL {
        return Err(Refusal::Query("level", level.to_string()));
    }
    let place = TileAddress { level, tile: number };
    let opened = session.timeline().await?;
    heavy(move || {
        let model = on_clock(&opened, &query);
        if tracks.iter().any(|&id| model.track(id).is_none()) {
            return Err(Refusal::Missing("track"));
        }
        let body = frame::write(model, place, &tile::spans(model, place, &tracks)).into();
        Ok(Reply { kind: "application/octet-stream", body, file: None })
    })
    .await
}

async fn details(session: Session, query: Query) -> Answer {
    let (track, number) = (query.number("track")?, query.number("event")?);
    let opened = session.timeline().await?;
    heavy(move || {
        let found = event::details(on_clock(&opened, &query), track, number);
        found.map(|found| Reply::value(&found)).ok_or(Refusal::Missing("event"))
    })
    .await
}

async fn neighbour(session: Session, query: Query) -> Answer {
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
    let opened = session.timeline().await?;
    heavy(move || {
        let model = on_clock(&opened, &query);
        event::hit(model, track, number).ok_or(Refusal::Missing("event"))?;
        let found = event::neighbour(model, track, number, way, same);
        Ok(Reply::value(&json!({"event": found})))
    })
    .await
}

async fn at(session: Session, query: Query) -> Answer {
    let (track, row, at) = (query.number("track")?, query.number("row")?, query.ns("t_ns")?);
    let tolerance = if query.text("tolerance_ns").is_some() { query.ns("tolerance_ns")?.max(0) } else { 0 };
    let opened = session.timeline().await?;
    heavy(move || {
        let model = on_clock(&opened, &query);
        model.track(track).ok_or(Refusal::Missing("track"))?;
        Ok(Reply::value(&json!({"event": event::at(model, track, row, at, tolerance)})))
    })
    .await
}

async fn search(session: Session, query: Query) -> Answer {
    let text = query.text("q").unwrap_or("").to_owned();
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(Refusal::Query("q", text.chars().take(80).collect()));
    }
    let offset = query.number_or("offset", 0_usize)?;
    let limit = query.number_or("limit", 500_usize)?.min(MOST_HITS);
    let opened = session.timeline().await?;
    heavy(move || {
        let model = on_clock(&opened, &query);
        Ok(Reply::value(&opened.search(model, &text)?.page(model, offset, limit)))
    })
    .await
}

async fn sums(session: Session, query: Query) -> Answer {
    let (from, to, tracks) = (query.ns("start_ns")?, query.ns("end_ns")?, query.tracks("tracks")?);
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&area::answer(on_clock(&opened, &query), from, to, tracks.as_deref()))))
        .await
}

async fn ranks(session: Session, query: Query) -> Answer {
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&collectives::answer(on_clock(&opened, &query))))).await
}

/// The critical path of the step at a moment.
async fn critical_path(session: Session, query: Query) -> Answer {
    let (host, at): (usize, i64) = (query.number("host")?, query.ns("t_ns")?);
    let opened = session.open().await?;
    let timeline = session.timeline().await?;
    heavy(move || {
        let model = on_clock(&timeline, &query);
        let step = critical::step_at(model, host, at).ok_or(Refusal::Missing("host"))?;
        let Some(step) = step else { return Ok(Reply::value(&critical::no_step(host))) };
        let found = |_: &Opened| {
            let answer = critical::answer(model, host, step).ok_or(Refusal::Missing("host"))?;
            Ok(answers::bytes(&answer))
        };
        opened.answer(&format!("critical/{host}/{step}/{}", model.aligned), found).map(Reply::json)
    })
    .await
}

async fn minimap(session: Session, query: Query) -> Answer {
    let buckets = query.number_or("buckets", 1_024_usize)?.clamp(1, MOST_BUCKETS);
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&overview::answer(on_clock(&opened, &query), buckets)))).await
}
