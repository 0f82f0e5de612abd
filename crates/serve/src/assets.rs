//! The page, as embedded by the build. Only files in this table are ever served: no request path reaches the
//! file system.

use std::io::Read as _;

use flate2::read::GzDecoder;

/// One file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its path below the root, without a leading slash.
    path: &'static str,
    /// Its MIME type.
    pub(crate) mime: &'static str,
    /// Changes when the file does.
    pub(crate) etag: &'static str,
    /// Its bytes, compressed.
    pub(crate) gzip: &'static [u8],
}

const ASSETS: &[Asset] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

impl Asset {
    /// The file for a request path.
    pub(crate) fn at(path: &str) -> Option<&'static Asset> {
        let name = path.strip_prefix('/')?;
        let name = if name.is_empty() { "index.html" } else { name };
        ASSETS.iter().find(|asset| asset.path == name)
    }

    /// Whether its name contains a fingerprint of its content. Then it never changes.
    pub(crate) fn is_immutable(&self) -> bool {
        self.path.starts_with("assets/")
    }

    /// Its uncompressed bytes.
    pub(crate) fn inflated(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Compressed by this build, so it always inflates.
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
