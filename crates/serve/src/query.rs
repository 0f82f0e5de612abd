//! What stands behind the question mark, read with suspicion: bounded, decoded once, numbers within their limits.

use std::str::FromStr;

use crate::error::Refusal;

/// Longer queries are refused.
pub(crate) const LONGEST: usize = 8 << 10;
/// Tracks that one request may name.
pub(crate) const MOST_TRACKS: usize = 1024;

/// The parts of a query, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Takes a query apart.
    pub(crate) fn of(text: Option<&str>) -> Result<Self, Refusal> {
        let text = text.unwrap_or("");
        if text.len() > LONGEST {
            return Err(Refusal::TooLong);
        }
        let parts = text.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decoded(key)?, decoded(value)?))
        });
        let parts: Option<Vec<(String, String)>> = parts.collect();
        parts.map(Query).ok_or_else(|| Refusal::Query("encoding", text.chars().take(80).collect()))
    }

    /// The text of a part.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A number that has to be there.
    pub(crate) fn number<T: FromStr>(&self, key: &'static str) -> Result<T, Refusal> {
        let text = self.text(key).unwrap_or("");
        text.parse().map_err(|_| Refusal::Query(key, text.chars().take(80).collect()))
    }

    /// A number that may be left out.
    pub(crate) fn number_or<T: FromStr>(&self, key: &'static str, default: T) -> Result<T, Refusal> {
        if self.text(key).is_none() { Ok(default) } else { self.number(key) }
    }

    /// A finite number of nanoseconds, within what fits a session's time.
    pub(crate) fn ns(&self, key: &'static str) -> Result<i64, Refusal> {
        let ns: f64 = self.number(key)?;
        if !ns.is_finite() || ns.abs() > 9.2e15 {
            return Err(Refusal::Query(key, ns.to_string()));
        }
        Ok(crate::timeline::model::ps(ns))
    }

    /// Numbers between commas; `None` where the part is missing.
    pub(crate) fn tracks(&self, key: &'static str) -> Result<Option<Vec<u32>>, Refusal> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let bad = || Refusal::Query(key, text.chars().take(80).collect());
        let numbers = text.split(',').filter(|part| !part.is_empty()).take(MOST_TRACKS + 1);
        let numbers: Vec<u32> = numbers.map(str::parse).collect::<Result<_, _>>().map_err(|_| bad())?;
        if numbers.len() > MOST_TRACKS { Err(bad()) } else { Ok(Some(numbers)) }
    }
}

/// Undoes the encoding of addresses; `None` where it is broken.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_decoded_once() {
        let query = Query::of(Some("q=a%2Bb+c%2525&level=7&empty&tracks=3,7")).unwrap();
        assert_eq!(query.text("q"), Some("a+b c%25"));
        assert_eq!(query.number::<u8>("level").unwrap(), 7);
        assert_eq!(query.text("empty"), Some(""));
        assert_eq!(query.tracks("tracks").unwrap(), Some(vec![3, 7]));
        assert_eq!(query.tracks("none").unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        for broken in ["q=%", "q=%2", "q=%zz", "%ff=1"] {
            assert!(matches!(Query::of(Some(broken)), Err(Refusal::Query("encoding", _))), "{broken}");
        }
        let query = Query::of(Some("level=-1&t_ns=NaN&far=1e300&tracks=1,x")).unwrap();
        assert!(query.number::<u8>("level").is_err());
        assert!(query.ns("t_ns").is_err() && query.ns("far").is_err() && query.ns("missing").is_err());
        assert!(query.tracks("tracks").is_err());
        let many = format!("tracks={}", "1,".repeat(MOST_TRACKS + 1));
        assert!(Query::of(Some(&many)).unwrap().tracks("tracks").is_err());
        assert!(matches!(Query::of(Some(&"a".repeat(LONGEST + 1))), Err(Refusal::TooLong)));
    }
}
