//! The browser for the page's end-to-end tests.

use std::path::PathBuf;

const USUAL: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// Where Chromium is: what `CHROMIUM` names, else one of the usual places.
pub(crate) fn chromium() -> Option<PathBuf> {
    let told = std::env::var_os("CHROMIUM").map(PathBuf::from);
    told.into_iter().chain(USUAL.iter().map(PathBuf::from)).find(|path| path.exists())
}
