//! JSON-RPC 2.0: from a line to a request, and from a result to a line. Knows nothing of methods.

use serde_json::{Map, Value, json};

/// The line is no JSON.
const PARSE: i64 = -32700;
/// The JSON is no request.
const INVALID: i64 = -32600;
/// There is no such method.
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
/// The method has no such parameters.
pub(crate) const PARAMETERS: i64 = -32602;
/// The server failed.
pub(crate) const INTERNAL: i64 = -32603;
/// Too many requests wait.
pub(crate) const BUSY: i64 = -32000;
/// The request is in a version of the protocol that this server does not speak.
pub(crate) const VERSION: i64 = -32022;

/// What a client sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// It waits for an answer.
    Request(Request),
    /// It does not.
    Notification(String, Map<String, Value>),
    /// An answer to a request, of which this server sends none.
    Answer,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    /// A number or a text, chosen by the client.
    pub(crate) id: Value,
    /// What it asks for.
    pub(crate) method: String,
    /// How.
    pub(crate) params: Map<String, Value>,
}

/// A request that has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Fault { code, message: message.into(), data: None }
    }
}

/// The message in a line, or the answer to a line that contains none.
pub(crate) fn parse(line: &[u8]) -> Result<Message, Value> {
    let none = |code, message: &str| failed(&Value::Null, &Fault::new(code, message));
    let value: Value = serde_json::from_slice(line).map_err(|_| none(PARSE, "the line is not JSON"))?;
    let Value::Object(mut members) = value else {
        return Err(none(INVALID, "a message is one JSON object per line; batches are not supported"));
    };
    let id = members.remove("id");
    let method = match members.remove("method") {
        Some(Value::String(method)) => method,
        _ if members.contains_key("result") || members.contains_key("error") => return Ok(Message::Answer),
        _ => return Err(none(INVALID, "the message has no method")),
    };
    let params = match members.remove("params") {
        Some(Value::Object(params)) => params,
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(none(INVALID, "the parameters are not an object")),
    };
    match id {
        None => Ok(Message::Notification(method, params)),
        Some(id @ (Value::Number(_) | Value::String(_))) => {
            Ok(Message::Request(Request { id, method, params }))
        }
        Some(_) => Err(none(INVALID, "the id is neither a number nor a string")),
    }
}

/// The answer to a line that is too long to be kept.
pub(crate) fn too_long(longest: usize) -> Value {
    failed(&Value::Null, &Fault::new(INVALID, format!("the message is longer than {longest} bytes")))
}

/// An answer with a result.
pub(crate) fn done(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// An answer without one.
pub(crate) fn failed(id: &Value, fault: &Fault) -> Value {
    let mut error = json!({"code": fault.code, "message": fault.message});
    if let (Some(data), Some(error)) = (&fault.data, error.as_object_mut()) {
        error.insert("data".to_owned(), data.clone());
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_answers_are_told_apart() {
        let request = parse(br#"{"jsonrpc": "2.0", "id": "a", "method": "ping"}"#).unwrap();
        let wanted = Request { id: "a".into(), method: "ping".to_owned(), params: Map::new() };
        assert_eq!(request, Message::Request(wanted));
        assert!(matches!(parse(br#"{"method": "x", "params": {}}"#), Ok(Message::Notification(..))));
        assert_eq!(parse(br#"{"id": 1, "result": {}}"#), Ok(Message::Answer));
    }

    #[test]
    fn what_is_no_message_gets_an_error_without_an_id() {
        let deep = "[".repeat(100_000);
        for (line, code) in [
            ("", PARSE),
            ("{", PARSE),
            ("\u{0}", PARSE),
            (deep.as_str(), PARSE),
            ("[]", INVALID),
            ("1", INVALID),
            (r#"{"id": 1}"#, INVALID),
            (r#"{"id": 1, "method": 2}"#, INVALID),
            (r#"{"id": null, "method": "ping"}"#, INVALID),
            (r#"{"id": 1, "method": "ping", "params": [1]}"#, INVALID),
        ] {
            let answer = parse(line.as_bytes()).unwrap_err();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&code.into(), &Value::Null), "{line:.40}");
        }
        assert!(parse(b"\xff\xfe").is_err());
    }
}
