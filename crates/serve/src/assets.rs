//! The page, as the build put it into the binary. Only what stands in this table is ever served: no path of a request
//! reaches the file system.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// One file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its path below the root, without a slash before it.
    path: &'static str,
    /// What it is.
    pub(crate) mime: &'static str,
    /// Changes when the file does.
    pub(crate) etag: &'static str,
    /// Its bytes, compressed.
    pub(crate) gzip: &'static [u8],
}

const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

impl Asset {
    /// The file that a request's path names.
    pub(crate) fn at(path: &str) -> Option<&'static Asset> {
        let name = path.strip_prefix('/')?;
        let name = if name.is_empty() { "index.html" } else { name };
        ASSETS.iter().find(|asset| asset.path == name)
    }

    /// Has its name a fingerprint of what is in it? Then it never changes.
    pub(crate) fn is_immutable(&self) -> bool {
        self.path.starts_with("assets/")
    }

    /// Its bytes as they were before they were compressed.
    pub(crate) fn inflated(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Compressed by our own build: it always inflates.
        let _ = GzDecoder::new(self.gzip).read_to_end(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_and_nothing_else_is() {
        let index = Asset::at("/").unwrap();
        assert_eq!(index.mime, "text/html; charset=utf-8");
        assert!(index.inflated().starts_with(b"<!doctype html>"));
        assert!(!index.is_immutable());
        for path in
            ["", "index.html", "//index.html", "/../Cargo.toml", "/etc/passwd", "/index.html/", "/%2e%2e/x"]
        {
            assert!(Asset::at(path).is_none(), "{path}");
        }
    }
}
