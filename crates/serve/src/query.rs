//! The query string, parsed defensively: bounded, decoded once, numbers within their limits.

use std::str::FromStr;

use axum::extract::Query as Decoded;
use axum::http::Uri;

use crate::error::Refusal;

/// Longer queries are refused.
pub(crate) const LONGEST: usize = 8 << 10;
/// Maximum number of tracks in one request.
pub(crate) const MOST_TRACKS: usize = 1024;

/// The parts of a query, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes the query of an address apart.
    pub(crate) fn of(address: &Uri) -> Result<Self, Refusal> {
        let text = address.query().unwrap_or("");
        if text.len() > LONGEST {
            return Err(Refusal::TooLong);
        }
        let parts = Decoded::try_from_uri(address);
        let unreadable = |_| Refusal::Query("encoding", text.chars().take(80).collect());
        parts.map(|Decoded(parts)| Query(parts)).map_err(unreadable)
    }

    /// The text of a part.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A required number.
    pub(crate) fn number<T: FromStr>(&self, key: &'static str) -> Result<T, Refusal> {
        let text = self.text(key).unwrap_or("");
        text.parse().map_err(|_| Refusal::Query(key, text.chars().take(80).collect()))
    }

    /// An optional number.
    pub(crate) fn number_or<T: FromStr>(&self, key: &'static str, default: T) -> Result<T, Refusal> {
        if self.text(key).is_none() { Ok(default) } else { self.number(key) }
    }

    /// A finite number of nanoseconds within the range of a session.
    pub(crate) fn ns(&self, key: &'static str) -> Result<i64, Refusal> {
        let ns: f64 = self.number(key)?;
        if !ns.is_finite() || ns.abs() > 9.2e15 {
            return Err(Refusal::Query(key, ns.to_string()));
        }
        Ok(stepscope_timeline::model::ps(ns))
    }

    /// Comma-separated numbers; `None` if the part is missing.
    pub(crate) fn tracks(&self, key: &'static str) -> Result<Option<Vec<u32>>, Refusal> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let bad = || Refusal::Query(key, text.chars().take(80).collect());
        let numbers = text.split(',').filter(|part| !part.is_empty()).take(MOST_TRACKS + 1);
        let numbers: Vec<u32> = numbers.map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
        if numbers.len() > MOST_TRACKS { Err(bad()) } else { Ok(Some(numbers)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> Result<Query, Refusal> {
        Query::of(&format!("/?{query}").parse().unwrap())
    }

    #[test]
    fn parts_are_decoded_once() {
        let query = of("q=a%2Bb+c%2525&level=7&empty&tracks=3,7").unwrap();
        assert_eq!(query.text("q"), Some("a+b c%25"));
        assert_eq!(query.number::<u8>("level").unwrap(), 7);
        assert_eq!(query.text("empty"), Some(""));
        assert_eq!(query.tracks("tracks").unwrap(), Some(vec![3, 7]));
        assert_eq!(query.tracks("none").unwrap(), None);
    }

    #[test]
    fn what_is_not_encoded_stands_for_itself() {
        let query = of("q=100%&name=%zz&bytes=a%ffb").unwrap();
        assert_eq!((query.text("q"), query.text("name")), (Some("100%"), Some("%zz")));
        assert_eq!(query.text("bytes"), Some("a\u{fffd}b"));
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        let query = of("level=-1&t_ns=NaN&far=1e300&tracks=1,x").unwrap();
        assert!(query.number::<u8>("level").is_err());
        assert!(query.ns("t_ns").is_err() && query.ns("far").is_err() && query.ns("missing").is_err());
        assert!(query.tracks("tracks").is_err());
        let many = format!("tracks={}", "1,".repeat(MOST_TRACKS + 1));
        assert!(of(&many).unwrap().tracks("tracks").is_err());
        assert!(matches!(of(&"a".repeat(LONGEST + 1)), Err(Refusal::TooLong)));
    }
}
