//! The request and the server: the parsed URL, the prepared request, and what both reveal about the protocol
//! and the batch size.

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Uri};
use serde_json::Value;

use crate::bench::BenchError;

/// Protocols of model servers, recognised by URL or answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/models/M:predict`: TensorFlow Serving, and KServe's first protocol.
    V1,
    /// `/v2/models/M/infer`: KServe's second protocol (Triton, OpenVINO, TorchServe, …).
    V2,
    /// Any other HTTP.
    Plain,
}

/// One request to one server, to be sent many times.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL as given.
    pub url: String,
    /// Name of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    pub(super) method: Method,
    pub(super) path: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Target {
    /// Parses a URL and prepares the request. Without a `method`, a body is posted, and GET is used if there is
    /// none.
    pub fn new(
        url: &str,
        method: Option<&str>,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Target, BenchError> {
        let uri = parsed(url)?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = path.parse::<Uri>().map_err(|_| BenchError::Url(url.to_owned()))?;
        let method = match method {
            Some(name) => {
                name.to_ascii_uppercase().parse().map_err(|_| BenchError::Header(name.to_owned()))?
            }
            None if body.is_empty() => Method::GET,
            None => Method::POST,
        };
        Ok(Target {
            url: url.to_owned(),
            host,
            port: uri.port_u16().unwrap_or(80),
            method,
            path,
            headers: header_map(&uri, headers, &body)?,
            body: body.into(),
        })
    }

    /// Bytes of the request's body.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// The protocol according to the URL; an answer may reveal more.
    pub fn protocol(&self, answer: Option<&[u8]>) -> Protocol {
        let path = self.path.path();
        let call = path.rsplit_once(':').map(|(_, call)| call);
        if path.starts_with("/v1/models/") && matches!(call, Some("predict" | "classify" | "regress")) {
            return Protocol::V1;
        }
        if path.starts_with("/v2/models/") && path.ends_with("/infer") {
            return Protocol::V2;
        }
        let answer: Option<Value> = answer.and_then(|bytes| serde_json::from_slice(bytes).ok());
        let has = |key: &str| answer.as_ref().is_some_and(|answer| answer.get(key).is_some());
        match () {
            () if has("predictions") => Protocol::V1,
            () if has("model_name") && has("outputs") => Protocol::V2,
            () => Protocol::Plain,
        }
    }

    /// Number of examples in one request; `None` if the body does not say.
    pub fn batch(&self) -> Option<u64> {
        let body: Value = serde_json::from_slice(&self.body).ok()?;
        let length = |value: &Value| value.as_array().map(|rows| rows.len() as u64);
        if let Some(instances) = body.get("instances") {
            return length(instances);
        }
        match body.get("inputs")? {
            // The second protocol: tensors with a shape, the batch first.
            Value::Array(tensors) if tensors.first().is_some_and(|tensor| tensor.get("shape").is_some()) => {
                tensors.first()?.get("shape")?.get(0)?.as_u64()
            }
            // The first protocol by columns: one tensor, or several by name.
            Value::Object(by_name) => by_name.values().next().and_then(length),
            other => length(other),
        }
    }
}

fn parsed(url: &str) -> Result<Uri, BenchError> {
    let uri: Uri = url.parse().map_err(|_| BenchError::Url(url.to_owned()))?;
    match uri.scheme_str() {
        Some("http") if uri.host().is_some_and(|host| !host.is_empty()) && port_fits(&uri) => Ok(uri),
        Some("https") => Err(BenchError::Https),
        _ => Err(BenchError::Url(url.to_owned())),
    }
}

/// A port that is not a number below 65,536 would silently become the default.
fn port_fits(uri: &Uri) -> bool {
    let behind = uri.authority().and_then(|authority| {
        let (_, host) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
        host.strip_prefix(authority.host())
    });
    uri.port_u16().is_some() || behind.is_none_or(str::is_empty)
}

fn header_map(uri: &Uri, given: &[(String, String)], body: &[u8]) -> Result<HeaderMap, BenchError> {
    let mut map = HeaderMap::new();
    let authority = uri.authority().map_or("", |authority| {
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host)
    });
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| BenchError::Header(text.to_owned()));
    map.insert(HOST, value(authority)?);
    map.insert(USER_AGENT, HeaderValue::from_static("stepscope"));
    if !body.is_empty() {
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, text) in given {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| BenchError::Header(name.clone()))?;
        map.insert(name, value(text)?);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, body: &str) -> Target {
        Target::new(url, None, &[], body.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn urls_are_taken_apart_or_refused() {
        let plain = target("http://[::1]:8501/v1/models/m:predict?x=1", "");
        assert_eq!((plain.host.as_str(), plain.port), ("::1", 8501));
        assert_eq!(plain.path, "/v1/models/m:predict?x=1");
        assert_eq!(plain.method, Method::GET);
        assert_eq!(target("http://host", "{}").method, Method::POST);
        assert_eq!(target("http://host", "{}").port, 80);
        for wrong in
            ["", "host:80", "localhost/x", "http://", "ftp://host/x", "http://host:99999/", "http://a b/"]
        {
            assert!(matches!(Target::new(wrong, None, &[], vec![]), Err(BenchError::Url(_))), "{wrong}");
        }
        assert!(matches!(Target::new("https://host/", None, &[], vec![]), Err(BenchError::Https)));
        let header = [("bad name".to_owned(), "x".to_owned())];
        assert!(matches!(Target::new("http://h/", None, &header, vec![]), Err(BenchError::Header(_))));
    }

    #[test]
    fn protocols_are_known_by_url_or_answer() {
        let kind = |url: &str, answer: &str| target(url, "{}").protocol(Some(answer.as_bytes()));
        assert_eq!(kind("http://h/v1/models/m/versions/3:predict", ""), Protocol::V1);
        assert_eq!(kind("http://h/v2/models/m/infer", "{}"), Protocol::V2);
        assert_eq!(kind("http://h/x", r#"{"predictions": [1]}"#), Protocol::V1);
        assert_eq!(kind("http://h/x", r#"{"model_name": "m", "outputs": []}"#), Protocol::V2);
        assert_eq!(kind("http://h/x", "hello"), Protocol::Plain);
    }

    #[test]
    fn the_body_tells_the_batch() {
        let batch = |body: &str| target("http://h/", body).batch();
        assert_eq!(batch(r#"{"instances": [1, 2, 3]}"#), Some(3));
        assert_eq!(batch(r#"{"inputs": {"x": [[1], [2]]}}"#), Some(2));
        assert_eq!(batch(r#"{"inputs": [[1], [2], [3]]}"#), Some(3));
        assert_eq!(batch(r#"{"inputs": [{"name": "x", "shape": [8, 3], "data": []}]}"#), Some(8));
        assert_eq!(batch(r#"{"inputs": [{"name": "x", "shape": []}]}"#), None);
        assert_eq!(batch("plain text"), None);
    }
}
