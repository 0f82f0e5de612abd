//! Which address gives what: the guard first, then the page or the data.

use std::pin::Pin;
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
use axum::routing::{MethodRouter, get, post};
use serde_json::{Value, json};

use crate::answers::{self, heavy};
use crate::assets::Asset;
use crate::curves;
use crate::error::Refusal;
use crate::evidence;
use crate::fleet;
use crate::guard::{Guard, HEADERS};
use crate::home::{self, Home};
use crate::memory;
use crate::programs;
use crate::query::{LONGEST, Query};
use crate::record::{self, Captures, Record};
use crate::sql;
use crate::store::{Opened, Store, Timeline};
use crate::tfprof;
use stepscope_timeline::event::{Same, Way};
use stepscope_timeline::model::Model;
use stepscope_timeline::tile::{MOST_LEVEL, TileAddress};
use stepscope_timeline::{area, collectives, critical, event, frame, overview, tile};

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
    pub(crate) home: Arc<Home>,
    pub(crate) captures: Captures,
}

impl App {
    pub(crate) fn new(store: Arc<Store>, guard: Guard) -> Self {
        App { store, guard, home: Arc::new(Home::in_user_cache()), captures: Captures::default() }
    }

    /// The same, and the page may record.
    pub(crate) fn recording(self, with: Option<Arc<dyn Record>>) -> Self {
        App { captures: Captures::new(with), ..self }
    }
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

    pub(crate) fn value(value: &Value) -> Self {
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
/// The same while it is being made. All addresses share this one type: the compiler would repeat the server's machinery for
/// each of theirs.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// An address that gives data.
pub(crate) fn data(answer: fn(Asked) -> Answering) -> MethodRouter<App> {
    get(move |asked: Asked| answer(asked))
}

/// An address that does something.
pub(crate) fn act(answer: fn(Asked) -> Answering) -> MethodRouter<App> {
    post(move |asked: Asked| answer(asked))
}

/// All addresses, behind the guard.
pub(crate) fn router(app: App) -> Router {
    let session = Router::new()
        .route("/report", data(|asked| Box::pin(report(asked))))
        .route("/info", data(|asked| Box::pin(info(asked))))
        .route("/view/{name}", data(|asked| Box::pin(view(asked))))
        .route("/csv/{name}", data(|asked| Box::pin(csv(asked))))
        .route("/memory_at", data(|asked| Box::pin(memory_at(asked))))
        .route("/memory_over", data(|asked| Box::pin(memory_over(asked))))
        .route("/memory_map", data(|asked| Box::pin(memory_map(asked))))
        .route("/sql", data(|asked| Box::pin(sql_answer(asked))))
        .route("/model", data(|asked| Box::pin(model(asked))))
        .route("/model/view", data(|asked| Box::pin(model_view(asked))))
        .route("/model/node", data(|asked| Box::pin(model_node(asked))))
        .route("/model/find", data(|asked| Box::pin(model_find(asked))))
        .route("/model/variables", data(|asked| Box::pin(model_variables(asked))))
        .route("/programs/card", data(|asked| Box::pin(program_card(asked))))
        .route("/programs/graph", data(|asked| Box::pin(program_graph(asked))))
        .route("/programs/memory", data(|asked| Box::pin(program_memory(asked))))
        .route("/timeline", data(|asked| Box::pin(timeline(asked))))
        .route("/tiles", data(|asked| Box::pin(tiles(asked))))
        .route("/event", data(|asked| Box::pin(details(asked))))
        .route("/neighbour", data(|asked| Box::pin(neighbour(asked))))
        .route("/at", data(|asked| Box::pin(at(asked))))
        .route("/search", data(|asked| Box::pin(search(asked))))
        .route("/area", data(|asked| Box::pin(sums(asked))))
        .route("/collectives", data(|asked| Box::pin(ranks(asked))))
        .route("/critical", data(|asked| Box::pin(critical_path(asked))))
        .route("/evidence", data(|asked| Box::pin(of_finding(asked))))
        .route("/overview", data(|asked| Box::pin(minimap(asked))));
    Router::new()
        .route("/api/sessions", data(|asked| Box::pin(sessions(asked))))
        .route("/api/categories", data(|asked| Box::pin(categories(asked))))
        .route("/api/views", data(|asked| Box::pin(views(asked))))
        .route("/api/sql", data(|asked| Box::pin(sql_tables(asked))))
        .route("/api/compare", data(|asked| Box::pin(compare(asked))))
        .nest("/api/s/{id}", session)
        .nest("/api/curves", curves::routes::router())
        .nest("/api/fleet", fleet::routes::router())
        .merge(home::router())
        .merge(record::routes::router())
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
    let writes = *method == Method::POST && is_action(address.path());
    if !writes && !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Refusal::Method);
    }
    if address.path().len() > LONGEST {
        return Err(Refusal::TooLong);
    }
    if !is_api {
        return Ok(());
    }
    let query = Query::of(address)?;
    if writes {
        // A token in an address can be in a link; one in a header or a cookie cannot.
        app.guard.admit_writing(headers)?;
        return app.guard.admit_token(headers, None);
    }
    app.guard.admit_token(headers, query.text("token"))
}

/// Whether something happens at this address.
fn is_action(path: &str) -> bool {
    matches!(path, record::routes::STARTS | record::routes::CANCELS)
}

/// A request for data.
pub(crate) struct Asked {
    pub(crate) app: App,
    pub(crate) query: Query,
    /// The session that its address names.
    id: Option<usize>,
    /// The view that its address names.
    name: Option<String>,
}

impl FromRequestParts<App> for Asked {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        // An address that cannot be decoded names nothing.
        let named = RawPathParams::from_request_parts(parts, app).await.ok();
        let part = |name: &str| named.as_ref()?.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        let (id, name) = (part("id").and_then(|id| id.parse().ok()), part("name").map(str::to_owned));
        Ok(Asked { app: app.clone(), query: Query::of(&parts.uri)?, id, name })
    }
}

impl Asked {
    /// The session, and what is asked about it.
    fn session(self) -> Result<(Session, Query), Refusal> {
        let id = self.id.ok_or(Refusal::Missing("session"))?;
        Ok((Session { id, app: self.app }, self.query))
    }
}

/// A session that an address names.
struct Session {
    id: usize,
    app: App,
}

impl Session {
    /// For a new visit: it is read again if its files changed.
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

async fn sessions(asked: Asked) -> Answer {
    heavy(move || Ok(Reply::json(asked.app.store.list()))).await
}

async fn categories(_: Asked) -> Answer {
    Ok(Reply::value(&answers::categories()))
}

async fn views(_: Asked) -> Answer {
    Ok(Reply::value(&answers::views()))
}

async fn compare(Asked { app, query, .. }: Asked) -> Answer {
    let (base, new) = (query.number("base")?, query.number("new")?);
    let (base, new) = (app.store.run(base).await?, app.store.run(new).await?);
    heavy(move || Ok(Reply::value(&answers::comparison(&base, &new)))).await
}

async fn report(asked: Asked) -> Answer {
    let (session, _) = asked.session()?;
    let opened = session.fresh().await?;
    heavy(move || answers::report(&opened)).await.map(Reply::json)
}

async fn info(asked: Asked) -> Answer {
    let (session, _) = asked.session()?;
    let opened = session.fresh().await?;
    heavy(move || answers::information(&opened)).await.map(Reply::json)
}

async fn view(mut asked: Asked) -> Answer {
    let name = asked.name.take().ok_or(Refusal::Missing("view"))?;
    let (session, query) = asked.session()?;
    let by = query.text("by").map(str::to_owned);
    let step = query.text("step").map(|_| query.number("step")).transpose()?;
    let opened = session.open().await?;
    heavy(move || answers::view(&opened, &name, by.as_deref(), step, false)).await.map(Reply::json)
}

async fn csv(mut asked: Asked) -> Answer {
    let name = asked.name.take().ok_or(Refusal::Missing("view"))?;
    let (session, query) = asked.session()?;
    let by = query.text("by").map(str::to_owned);
    let step = query.text("step").map(|_| query.number("step")).transpose()?;
    let opened = session.open().await?;
    heavy(move || {
        let body = answers::view(&opened, &name, by.as_deref(), step, true)?;
        Ok(Reply { kind: "text/csv; charset=utf-8", body, file: Some(format!("{name}.csv")) })
    })
    .await
}

async fn memory_at(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let (allocator, at) = (query.number("allocator")?, query.ns("t_ns")?);
    let opened = session.timeline().await?;
    heavy(move || memory::at(&opened, allocator, at).map(|value| Reply::value(&value))).await
}

async fn memory_over(asked: Asked) -> Answer {
    of_allocator(asked, memory::over_time).await
}

async fn memory_map(asked: Asked) -> Answer {
    of_allocator(asked, memory::map).await
}

async fn of_allocator(asked: Asked, answer: fn(&Timeline, usize) -> Result<Value, Refusal>) -> Answer {
    let (session, query) = asked.session()?;
    let allocator = query.number("allocator")?;
    let opened = session.timeline().await?;
    heavy(move || answer(&opened, allocator).map(|value| Reply::value(&value))).await
}

/// A query of the console.
async fn sql_answer(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let text = query.text("q").unwrap_or("").to_owned();
    let opened = session.timeline().await?;
    heavy(move || sql::answer(opened.database(), &text).map(|value| Reply::value(&value))).await
}

async fn sql_tables(_: Asked) -> Answer {
    Ok(Reply::value(&sql::described()))
}

/// The model behind runs of classic TensorFlow.
async fn model(asked: Asked) -> Answer {
    let (session, _) = asked.session()?;
    let opened = session.open().await?;
    heavy(move || tfprof::about(&opened).map(Reply::json)).await
}

async fn model_view(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.open().await?;
    heavy(move || tfprof::view(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_node(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.open().await?;
    heavy(move || tfprof::node(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_find(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.open().await?;
    heavy(move || tfprof::find(&opened, &query).map(|value| Reply::value(&value))).await
}

async fn model_variables(asked: Asked) -> Answer {
    let (session, _) = asked.session()?;
    let opened = session.open().await?;
    heavy(move || tfprof::variables(&opened).map(Reply::json)).await
}

async fn program_card(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.timeline().await?;
    heavy(move || programs::card(on_clock(&opened, &query), &query)).await
}

async fn program_graph(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.timeline().await?;
    heavy(move || programs::graph(on_clock(&opened, &query), &query)).await
}

async fn program_memory(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.timeline().await?;
    heavy(move || programs::memory(on_clock(&opened, &query), &query)).await
}

async fn timeline(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.fresh().await?;
    let timeline = session.timeline().await?;
    heavy(move || answers::timeline(&opened, on_clock(&timeline, &query))).await.map(Reply::json)
}

/// The timeline on the clock that a request asks for.
fn on_clock<'t>(timeline: &'t Timeline, query: &Query) -> &'t Model {
    timeline.on(query.text("clock"))
}

async fn tiles(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
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

async fn details(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let (track, number) = (query.number("track")?, query.number("event")?);
    let opened = session.timeline().await?;
    heavy(move || {
        let found = event::details(on_clock(&opened, &query), track, number);
        found.map(|found| Reply::value(&found)).ok_or(Refusal::Missing("event"))
    })
    .await
}

async fn neighbour(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
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

async fn at(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
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

async fn search(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
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

async fn sums(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let (from, to, tracks) = (query.ns("start_ns")?, query.ns("end_ns")?, query.tracks("tracks")?);
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&area::answer(on_clock(&opened, &query), from, to, tracks.as_deref()))))
        .await
}

async fn ranks(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&collectives::answer(on_clock(&opened, &query))))).await
}

/// The critical path of the step at a moment.
async fn critical_path(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
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

/// What a finding is about.
async fn of_finding(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let id = query.text("finding").ok_or(Refusal::Missing("finding"))?.to_owned();
    let (opened, timeline) = (session.open().await?, session.timeline().await?);
    heavy(move || evidence::answer(&opened, on_clock(&timeline, &query), &id).map(Reply::json)).await
}

async fn minimap(asked: Asked) -> Answer {
    let (session, query) = asked.session()?;
    let buckets = query.number_or("buckets", 1_024_usize)?.clamp(1, MOST_BUCKETS);
    let opened = session.timeline().await?;
    heavy(move || Ok(Reply::value(&overview::answer(on_clock(&opened, &query), buckets)))).await
}
