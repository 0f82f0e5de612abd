//! The browser for the page's end-to-end tests: found, or installed from Debian's packages if allowed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, run};

const USUAL: &[&str] = &["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Location of Chromium; installs it first if it is missing and apt is available.
pub(crate) fn chromium() -> Result<PathBuf, String> {
    if let Some(found) = found() {
        return Ok(found);
    }
    install()?;
    found().ok_or_else(|| "no Chromium found: install it, or set CHROMIUM to its path".to_owned())
}

fn found() -> Option<PathBuf> {
    let told = std::env::var_os("CHROMIUM").map(PathBuf::from);
    told.into_iter().chain(USUAL.iter().map(PathBuf::from)).find(|path| path.exists())
}

fn install() -> Outcome {
    if !Path::new("/usr/bin/apt-get").exists() {
        return Ok(());
    }
    run("browser: package lists", Command::new("apt-get").args(["update", "-qq"]))?;
    let args = ["install", "-y", "-qq", "--no-install-recommends", "chromium"];
    run("browser: install", Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
}
