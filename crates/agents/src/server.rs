//! The server without its streams: a request in, its answer out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde_json::{Map, Value};
use stepscope_session::Problem;

use crate::answer;
use crate::failed::{Failed, Stop};
use crate::message::{self, Fault, INTERNAL, Message, PARAMETERS, Request, UNKNOWN_METHOD, done, failed};
use crate::protocol;
use crate::roots::Roots;
use crate::shelf::{Asked, Shelf};
use crate::tools::{self, Tool};

/// Answers requests about the profiles below some folders.
#[derive(Debug)]
pub struct Server {
    pub(crate) roots: Roots,
    shelf: Shelf,
    version: String,
}

/// What a tool works with.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) stop: &'a Stop,
    shelf: &'a Shelf,
}

impl Desk<'_> {
    /// The profile at a path.
    pub(crate) fn open(&self, path: &str, session: Option<&str>) -> Result<Asked, Failed> {
        self.shelf.open(path, session, self.roots, self.stop)
    }
}

impl Server {
    /// A server for the profiles below these folders; `version` is the program's.
    pub fn new(folders: &[PathBuf], version: &str) -> Result<Self, Problem> {
        Ok(Server { roots: Roots::new(folders)?, shelf: Shelf::default(), version: version.to_owned() })
    }

    /// The answer to one line, as one line without its end; `None` if the line expects none.
    pub fn answer(&self, line: &[u8]) -> Option<String> {
        match message::parse(line) {
            Ok(Message::Request(request)) => self.answer_to(&request, &Stop::default()),
            Ok(Message::Notification(..) | Message::Answer) => None,
            Err(answer) => Some(answer),
        }
        .map(|answer| answer.to_string())
    }

    /// The answer to a request; `None` if it was cancelled.
    pub(crate) fn answer_to(&self, request: &Request, stop: &Stop) -> Option<Value> {
        let result = protocol::is_modern(request).and_then(|is_modern| {
            let result = match protocol::answer(request, &self.version) {
                Some(result) => result?,
                None if request.method == "tools/call" => match self.call(&request.params, stop)? {
                    Some(result) => result,
                    None => return Ok(None),
                },
                None => return Err(Fault::new(UNKNOWN_METHOD, "this server has no such method")),
            };
            Ok(Some(if is_modern {
                protocol::modern(result, &request.method, &self.version)
            } else {
                result
            }))
        });
        match result {
            Ok(result) => result.map(|result| done(&request.id, result)),
            Err(fault) => Some(failed(&request.id, &fault)),
        }
    }

    /// Calls a tool; `None` if it was cancelled.
    fn call(&self, params: &Map<String, Value>, stop: &Stop) -> Result<Option<Value>, Fault> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let tool = tools::named(name).ok_or_else(|| {
            let names: Vec<&str> = tools::TOOLS.iter().map(|tool| tool.name).collect();
            Fault::new(PARAMETERS, format!("there is no such tool; the tools are {}", names.join(", ")))
        })?;
        let none = Map::new();
        let given = match params.get("arguments") {
            Some(Value::Object(given)) => given,
            None | Some(Value::Null) => &none,
            Some(_) => return Err(Fault::new(PARAMETERS, "the arguments are not an object")),
        };
        let desk = Desk { roots: &self.roots, stop, shelf: &self.shelf };
        // A profile that breaks an analysis must not end the conversation. A reader that is stopped unwinds too.
        let answered = catch_unwind(AssertUnwindSafe(|| Tool::call(tool, &desk, given)));
        if stop.is_set() {
            return Ok(None);
        }
        match answered {
            Ok(Ok(answer)) => Ok(Some(answer.result())),
            Ok(Err(Failed::Problem(problem))) => Ok(Some(answer::error(&problem.to_string()))),
            Ok(Err(Failed::Cancelled)) => Ok(None),
            Err(_) => {
                Err(Fault::new(INTERNAL, "the tool failed on this input; this is an error of stepscope"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    fn call(tool: &str, arguments: &Value) -> Request {
        let params = json!({"name": tool, "arguments": arguments});
        let params = params.as_object().cloned().unwrap_or_default();
        Request { id: 1.into(), method: "tools/call".to_owned(), params }
    }

    /// A folder with a trace of this many events.
    fn recorded(events: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut file = std::fs::File::create(folder.path().join("trace.json")).unwrap();
        let event = r#"{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":5}"#;
        let rows = vec![event; events].join(",\n");
        write!(file, "{{\"traceEvents\":[{rows}]}}").unwrap();
        folder
    }

    #[test]
    fn a_cancelled_query_ends_long_before_its_limit() {
        let folder = recorded(100);
        let server = Server::new(&[folder.path().to_owned()], "0").unwrap();
        let endless =
            "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t";
        let request = call("sql", &json!({"path": "trace.json", "query": endless}));
        let (stop, start) = (Stop::default(), Instant::now());
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| server.answer_to(&request, &stop));
            std::thread::sleep(Duration::from_millis(200));
            stop.set();
            assert_eq!(answer.join().unwrap(), None);
        });
        let limit = stepscope_query::Limits::PAGE.time;
        assert!(start.elapsed() < limit.mul_f64(0.8), "{:?}", start.elapsed());
        let request = call("sql", &json!({"path": "trace.json", "query": "SELECT count(*) FROM event"}));
        assert!(server.answer_to(&request, &Stop::default()).is_some(), "the next question is answered");
    }

    #[test]
    fn a_cancelled_call_stops_reading() {
        let folder = recorded(400_000);
        let server = Server::new(&[folder.path().to_owned()], "0").unwrap();
        let (stop, request) = (Stop::default(), call("report", &json!({"path": "trace.json"})));
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| server.answer_to(&request, &stop));
            while stop.progress().total() == 0 && !answer.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.set();
            assert_eq!(answer.join().unwrap(), None);
        });
        let (read, total) = (stop.progress().bytes(), stop.progress().total());
        assert!(read < total, "{read} of {total} bytes were read");
    }
}
