//! URLs: which server keeps an object, in which bucket, under which key.

use object_store::path::Path;

use crate::error::{Error, Kind};
use crate::names;

/// What kind of server keeps an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Amazon S3, or a server that speaks its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// A web server: single files, no folders.
    Web,
}

/// Beginnings of URLs.
const SCHEMES: &[(&str, Scheme)] = &[
    ("s3://", Scheme::S3),
    ("s3a://", Scheme::S3),
    ("gs://", Scheme::Gcs),
    ("az://", Scheme::Azure),
    ("abfs://", Scheme::Azure),
    ("abfss://", Scheme::Azure),
    ("http://", Scheme::Web),
    ("https://", Scheme::Web),
];

/// A place in a bucket, or a file on a web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The kind of server.
    pub scheme: Scheme,
    /// The bucket with its scheme; for a web server, the whole URL.
    pub root: String,
    /// The key within the bucket, without slashes at its ends, empty names by their sign; empty for the bucket itself and on a web server.
    pub key: String,
}

impl Location {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let wrong = |detail: &str| Error::new(url, Scheme::Web, Kind::BadUrl(detail.to_owned()));
        let known = SCHEMES.iter().find(|(start, _)| url.starts_with(start));
        let &(start, scheme) = known.ok_or_else(|| wrong("its scheme is not known"))?;
        let rest = url.get(start.len()..).unwrap_or_default();
        if scheme == Scheme::Web {
            let named = rest.split(['?', '#']).next().unwrap_or_default();
            if named.starts_with('/') || named.is_empty() {
                return Err(wrong("it names no server"));
            }
            return Ok(Location { scheme, root: url.to_owned(), key: String::new() });
        }
        // Windows joins paths with backslashes.
        let rest = if cfg!(windows) { rest.replace('\\', "/") } else { rest.to_owned() };
        let (bucket, key) = rest.split_once('/').unwrap_or((&rest, ""));
        if bucket.is_empty() {
            return Err(wrong("it names no bucket"));
        }
        if key.split('/').any(|name| matches!(name, "." | "..")) {
            return Err(wrong("it contains `.` or `..`"));
        }
        let key = names::signed(key.trim_end_matches('/'));
        Path::parse(&key).map_err(|error| wrong(&error.to_string()))?;
        Ok(Location { scheme, root: format!("{start}{bucket}"), key })
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        if self.key.is_empty() { self.root.clone() } else { format!("{}/{}", self.root, self.key) }
    }

    /// The folder that holds it, and its name there; `None` for a bucket and on a web server.
    pub(crate) fn parent(&self) -> Option<(Location, &str)> {
        if self.key.is_empty() {
            return None;
        }
        let (folder, name) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        Some((Location { key: folder.to_owned(), ..self.clone() }, name))
    }

    /// A place below it.
    pub(crate) fn join(&self, name: &str) -> Location {
        let key = if self.key.is_empty() { name.to_owned() } else { format!("{}/{name}", self.key) };
        Location { key, ..self.clone() }
    }

    /// The key as the stores' library takes it.
    pub(crate) fn path(&self) -> Path {
        names::path(&self.key)
    }

    /// What the keys of everything in it begin with; `None` for a bucket.
    pub(crate) fn prefix(&self) -> Option<String> {
        (!self.key.is_empty()).then(|| format!("{}/", names::unsigned(&self.key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_and_put_together() {
        let at = Location::parse("s3://bucket/logs/run 1/").unwrap();
        assert_eq!((at.scheme, at.root.as_str(), at.key.as_str()), (Scheme::S3, "s3://bucket", "logs/run 1"));
        assert_eq!(at.url(), "s3://bucket/logs/run 1");
        let (folder, name) = at.parent().unwrap();
        assert_eq!((folder.url().as_str(), name), ("s3://bucket/logs", "run 1"));
        assert_eq!(folder.join("x").url(), "s3://bucket/logs/x");
        let twice = Location::parse("s3://bucket/logs//run/").unwrap();
        assert_eq!(
            (twice.url().as_str(), twice.prefix().as_deref()),
            ("s3://bucket/logs/∅/run", Some("logs//run/"))
        );
        assert_eq!(Location::parse(&twice.url()).unwrap(), twice);
        let bucket = Location::parse("gs://bucket").unwrap();
        assert_eq!((bucket.parent(), bucket.join("a").url().as_str()), (None, "gs://bucket/a"));
        assert_eq!(Location::parse("abfss://c@acc.dfs.core.windows.net/a").unwrap().key, "a");
        let web = Location::parse("https://host/a/b.json?token=1").unwrap();
        assert_eq!((web.url().as_str(), web.parent()), ("https://host/a/b.json?token=1", None));
    }

    #[test]
    fn what_names_no_place_is_refused() {
        for wrong in
            ["s3://", "s3:///key", "ftp://host/x", "http://", "https:///x", "s3://b/../c", "s3://b/a/."]
        {
            assert!(matches!(Location::parse(wrong).unwrap_err().kind, Kind::BadUrl(_)), "{wrong}");
        }
    }
}
