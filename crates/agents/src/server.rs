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
        // A profile that breaks an analysis must not end the conversation.
        let answered = catch_unwind(AssertUnwindSafe(|| Tool::call(tool, &desk, given))).map_err(|_| {
            Fault::new(INTERNAL, "the tool failed on this input; this is an error of stepscope")
        })?;
        Ok(match answered {
            _ if stop.is_set() => None,
            Ok(answer) => Some(answer.result()),
            Err(Failed::Problem(problem)) => Some(answer::error(&problem.to_string())),
            Err(Failed::Cancelled) => None,
        })
    }
}
