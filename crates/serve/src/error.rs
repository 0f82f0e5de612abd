//! Everything that can go wrong with a request: a status and its text.

use crate::words;
use axum::http::StatusCode;
use serde_json::{Value, json};
use stepscope_session::{Cause, Problem};

use crate::store::Progressed;

/// Why a request got no data.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// An invalid query: which part, and its value.
    Query(&'static str, String),
    /// The request is longer than any valid one.
    TooLong,
    /// A method other than GET and HEAD.
    Method,
    /// A foreign `Host`.
    Host(String),
    /// A request from a foreign page.
    Origin,
    /// The token is wrong or missing.
    Token,
    /// Something that does not exist: its kind.
    Missing(&'static str),
    /// The session is being opened.
    Loading(Progressed),
    /// The session cannot be read.
    Unreadable(Box<Problem>),
    /// A query that cannot be answered.
    Sql(Box<Problem>),
    /// As many queries run as may run at once.
    Busy,
    /// The server may not record.
    RecordingOff,
    /// A capture is running already.
    Recording,
    /// The answer takes too long.
    Overran,
    /// An internal error.
    Broken,
}

impl Refusal {
    /// The HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Refusal::Query(..) | Refusal::Sql(_) => StatusCode::BAD_REQUEST,
            Refusal::Busy => StatusCode::TOO_MANY_REQUESTS,
            Refusal::Recording => StatusCode::CONFLICT,
            Refusal::TooLong => StatusCode::URI_TOO_LONG,
            Refusal::Method => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::Host(_) | Refusal::Origin | Refusal::Token | Refusal::RecordingOff => {
                StatusCode::FORBIDDEN
            }
            Refusal::Missing(_) => StatusCode::NOT_FOUND,
            Refusal::Loading(_) => StatusCode::ACCEPTED,
            Refusal::Unreadable(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::Overran => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The body, for people.
    pub(crate) fn body(&self) -> Value {
        let said = match self {
            Refusal::Loading(progress) => return json!({"loading": progress}),
            Refusal::Unreadable(problem) | Refusal::Sql(problem) => {
                return json!({"error": problem_json(problem)});
            }
            Refusal::Query(part, found) => words::bad_query(part, found),
            Refusal::TooLong => words::too_long(),
            Refusal::Method => words::bad_method(),
            Refusal::Host(found) => words::foreign_host(found),
            Refusal::Origin => words::foreign_origin(),
            Refusal::Token => words::no_token(),
            Refusal::Missing(what) => words::missing(what),
            Refusal::Busy => words::busy(),
            Refusal::RecordingOff => words::recording_off(),
            Refusal::Recording => words::recording(),
            Refusal::Overran => words::overran(crate::answers::LIMIT.as_secs_f64()),
            Refusal::Broken => words::broken(),
        };
        let [what, found, todo] = said;
        json!({"error": {"what": what, "found": found, "todo": todo, "hints": []}})
    }
}

/// A problem in the three parts that the page shows.
pub(crate) fn problem_json(problem: &Problem) -> Value {
    let part = |place: usize| problem.parts().get(place).map_or("", String::as_str);
    json!({"what": part(0), "found": part(1), "todo": part(2), "hints": problem.hints()})
}

/// A problem of the server itself.
pub(crate) fn problem(cause: Cause, [what, found, todo]: words::Explained) -> Problem {
    Problem::new(cause, what).then(found).then(todo)
}
