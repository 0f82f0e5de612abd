//! Why something could not be read, as values. What a server says is reduced to one short line without anything that may be
//! secret: queries of signed URLs are cut off.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

use crate::location::{Location, Scheme};

/// Longest text of a server that is passed on.
const LONGEST: usize = 300;

/// Something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {kind:?}")]
pub struct Error {
    /// What was asked for.
    pub url: String,
    /// The kind of server.
    pub scheme: Scheme,
    /// Why.
    pub kind: Kind,
}

/// Why something could not be read. Texts are what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The URL cannot be understood.
    BadUrl(String),
    /// The environment has no credentials, and no metadata server has any.
    NoCredentials,
    /// The credentials are not complete, or are refused.
    Denied(String),
    /// The bucket does not exist.
    NoBucket,
    /// Neither an object nor a folder has this name.
    NotFound,
    /// The bucket is in another region.
    Region,
    /// A web server cannot list folders.
    NoFolder,
    /// The server cannot be reached.
    NoNetwork(String),
    /// The object was replaced while it was read.
    Changed,
    /// There are more objects than a search may list.
    TooMany(u64),
    /// The copy does not fit: bytes needed, bytes free, and the folder.
    NoSpace(u64, u64, String),
    /// The copy cannot be written.
    Disk(String),
    /// The server answers something else than what was asked for.
    Answer(String),
}

/// No server of metadata answers, so that there are no credentials.
#[derive(Debug, thiserror::Error)]
#[error("there is no metadata server")]
pub(crate) struct NoMetadata;

impl Error {
    pub(crate) fn new(url: &str, scheme: Scheme, kind: Kind) -> Self {
        Error { url: shown(url), scheme, kind }
    }

    pub(crate) fn at(location: &Location, kind: Kind) -> Self {
        Error::new(&location.url(), location.scheme, kind)
    }

    /// What the stores' library says, classified.
    pub(crate) fn of(location: &Location, error: &object_store::Error) -> Self {
        Error::at(location, kind_of(error))
    }
}

/// An error, and what caused it.
fn causes<'e>(error: &'e object_store::Error) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    let first: &'e (dyn StdError + 'static) = error;
    std::iter::successors(Some(first), |&error| error.source())
}

fn kind_of(error: &object_store::Error) -> Kind {
    use object_store::Error as Store;
    let chain = || causes(error);
    if chain().any(|error| error.is::<NoMetadata>()) {
        return Kind::NoCredentials;
    }
    let text = error.to_string();
    let says = |word: &str| text.contains(word);
    if says("NoSuchBucket") || says("ContainerNotFound") || says("bucket does not exist") {
        return Kind::NoBucket;
    }
    if says("incorrectly configured region")
        || says("AuthorizationHeaderMalformed")
        || says("PermanentRedirect")
    {
        return Kind::Region;
    }
    let http = chain().find_map(|error| error.downcast_ref::<HttpError>());
    let last = || chain().last().map_or_else(String::new, |error| tidy(&error.to_string()));
    match (error, http.map(HttpError::kind)) {
        (_, Some(HttpErrorKind::Connect | HttpErrorKind::Timeout)) => Kind::NoNetwork(last()),
        (Store::NotFound { .. }, _) => Kind::NotFound,
        (Store::Precondition { .. }, _) => Kind::Changed,
        _ if says("412 Precondition Failed") => Kind::Changed,
        (Store::PermissionDenied { .. } | Store::Unauthenticated { .. }, _) => Kind::Denied(said(&text)),
        // Lists have no kind of their own for it.
        _ if says("403 Forbidden") || says("401 Unauthorized") => Kind::Denied(said(&text)),
        _ if missing_credential(&text) => Kind::NoCredentials,
        (Store::InvalidPath { .. }, _) => Kind::Answer(tidy(&text)),
        _ => Kind::Answer(if http.is_some() { last() } else { said(&text) }),
    }
}

/// What builders say where the environment is not complete.
fn missing_credential(text: &str) -> bool {
    [
        "Account must be specified",
        "Missing AccessKeyId",
        "Missing SecretAccessKey",
        "Missing access key",
        "Missing secret",
    ]
    .iter()
    .any(|missing| text.to_lowercase().contains(&missing.to_lowercase()))
}

/// The code and the message in a store's answer; else the end of the text.
fn said(text: &str) -> String {
    let between = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner.to_owned())
    };
    match (between("Code"), between("Message")) {
        (Some(code), Some(message)) => tidy(&format!("{code}: {message}")),
        (Some(only), None) | (None, Some(only)) => tidy(&only),
        (None, None) => tidy(text.rsplit_once(" - ").map_or(text, |(_, last)| last)),
    }
}

/// One short line, without queries of URLs.
fn tidy(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(shown).collect();
    let line = words.join(" ");
    let end = line.char_indices().nth(LONGEST).map(|(at, _)| at);
    end.map_or(line.clone(), |end| format!("{}…", line.get(..end).unwrap_or_default()))
}

/// A URL without its query, which may hold a signature.
pub(crate) fn shown(url: &str) -> String {
    match url.split_once('?') {
        Some((before, _)) if before.contains("://") => format!("{before}?…"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn answers_are_classified_by_what_they_say() {
        assert_eq!(kind_of(&generic("404: <Code>NoSuchBucket</Code>")), Kind::NoBucket);
        let denied = object_store::Error::PermissionDenied {
            path: "x".to_owned(),
            source: "403: <Code>InvalidAccessKeyId</Code><Message>No such key</Message>".into(),
        };
        assert_eq!(kind_of(&denied), Kind::Denied("InvalidAccessKeyId: No such key".to_owned()));
        let none = object_store::Error::Generic { store: "S3", source: Box::new(NoMetadata) };
        assert_eq!(kind_of(&none), Kind::NoCredentials);
        assert_eq!(kind_of(&generic("Account must be specified")), Kind::NoCredentials);
        assert_eq!(kind_of(&generic("a - b - unexpected end")), Kind::Answer("unexpected end".to_owned()));
    }

    #[test]
    fn signatures_and_long_texts_are_not_passed_on() {
        let Kind::Answer(text) = kind_of(&generic("GET https://h/x?X-Amz-Signature=abc failed")) else {
            panic!()
        };
        assert_eq!(text, "Generic S3 error: GET https://h/x?… failed");
        assert!(tidy(&"ä".repeat(5_000)).chars().count() <= LONGEST + 1);
        assert_eq!(Error::new("https://h/x?sig=1", Scheme::Web, Kind::NotFound).url, "https://h/x?…");
    }
}
