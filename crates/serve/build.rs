//! Builds the page (`ui/`) and embeds it in the binary: `npm ci` if the lock file changed, `vite build` into
//! `OUT_DIR`, then one compressed file each and a table of all files.
//!
//! `STEPSCOPE_UI_DIST=DIR` takes a page that is already built. A published crate has no `ui/` beside it and carries the
//! built page in `page/` (`cargo xtask package` puts it there). `STEPSCOPE_SKIP_UI=1` gives a page that says how to get
//! the real one. Where the page cannot be built, a debug build does the same with a warning, and a release build fails:
//! nobody ships a program without its page by mistake.
#![allow(clippy::expect_used, clippy::panic, reason = "a build that cannot go on says so and ends")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;

/// An older lock was left behind.
const STALE: Duration = Duration::from_secs(600);

const PLACEHOLDER: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>stepscope</title>\n\
    <h1>stepscope was built without its page</h1>\n\
    <p>Everything else works: <code>stepscope report PATH</code>, and the data below <code>/api/</code>.</p>\n\
    <p>To get the page, install Node.js with npm and build again: <code>cargo build --release</code>.</p>\n</html>\n";

fn main() {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(env("OUT_DIR"));
    for name in ["STEPSCOPE_SKIP_UI", "STEPSCOPE_UI_DIST"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let page = if is_set("STEPSCOPE_SKIP_UI") {
        placeholder(&out, "STEPSCOPE_SKIP_UI is set")
    } else {
        match page(&root, &out) {
            Ok(page) => page,
            Err(why) if env("PROFILE") == "release" => {
                panic!(
                    "the page cannot be built: {why}; fix that, or set STEPSCOPE_SKIP_UI=1 to build without it"
                )
            }
            Err(why) => placeholder(&out, &why),
        }
    };
    embed(&page, &out);
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// A folder with a page that says how to get the real one.
fn placeholder(out: &Path, why: &str) -> PathBuf {
    println!("cargo::warning=the page is left out: {why}");
    let page = out.join("placeholder");
    fs::create_dir_all(&page).expect("OUT_DIR can be written to");
    fs::write(page.join("index.html"), PLACEHOLDER).expect("OUT_DIR can be written to");
    page
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

/// The folder that holds the built page.
fn page(root: &Path, out: &Path) -> Result<PathBuf, String> {
    let ui = root.join("../../ui");
    match std::env::var_os("STEPSCOPE_UI_DIST") {
        Some(folder) => built(PathBuf::from(folder)),
        None if ui.join("package.json").exists() => build(&ui, out),
        None => built(root.join("page")),
    }
}

/// A page that somebody built before.
fn built(page: PathBuf) -> Result<PathBuf, String> {
    println!("cargo::rerun-if-changed={}", page.display());
    let whole = page.join("index.html").exists();
    if whole { Ok(page) } else { Err(format!("no index.html in {}", page.display())) }
}

/// Builds the page from its sources.
fn build(ui: &Path, out: &Path) -> Result<PathBuf, String> {
    let inputs = [
        "src",
        "public",
        "index.html",
        "package.json",
        "package-lock.json",
        "vite.config.ts",
        "tsconfig.json",
    ];
    for input in inputs.iter().map(|name| ui.join(name)).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    install(ui)?;
    let target = out.join("ui");
    let vite = Path::new("node_modules").join("vite").join("bin").join("vite.js");
    let mut build = Command::new("node");
    build
        .arg(vite)
        .args(["build", "--emptyOutDir", "--logLevel", "error", "--outDir"])
        .arg(&target)
        .current_dir(ui);
    run(&mut build, "vite build")?;
    Ok(target)
}

/// Installs what the lock file names for a build, unless it is already installed: checks and tests need more packages,
/// but nobody who only builds should wait for those. Two builds must not do this at once, because `npm ci` starts by
/// deleting.
fn install(ui: &Path) -> Result<(), String> {
    let installed = || {
        let lock = fs::metadata(ui.join("package-lock.json")).and_then(|lock| lock.modified());
        let there =
            fs::metadata(ui.join("node_modules/.package-lock.json")).and_then(|there| there.modified());
        matches!((lock, there), (Ok(lock), Ok(there)) if there >= lock)
    };
    if installed() {
        return Ok(());
    }
    let _lock = Lock::take(ui)?;
    if installed() {
        return Ok(());
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let mut ci = Command::new(npm);
    ci.args(["ci", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline"]).current_dir(ui);
    run(&mut ci, "npm ci")
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{what} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
    Err(format!("{what} failed: {}", last.join(" | ")))
}

/// A file that only one build can create at a time.
struct Lock(PathBuf);

impl Lock {
    fn take(ui: &Path) -> Result<Self, String> {
        let whole = fs::canonicalize(ui).map_err(|error| format!("no page to build: {error}"))?;
        let name = format!("stepscope-ui-{:016x}.lock", fingerprint(whole.to_string_lossy().as_bytes()));
        let path = std::env::temp_dir().join(name);
        for _ in 0..STALE.as_secs() * 4 {
            if fs::OpenOptions::new().write(true).create_new(true).open(&path).is_ok() {
                return Ok(Lock(path));
            }
            let age = fs::metadata(&path).and_then(|file| file.modified()).ok();
            let age = age.and_then(|made| SystemTime::now().duration_since(made).ok());
            if age.is_some_and(|age| age > STALE) {
                let _ = fs::remove_file(&path);
            }
            sleep(Duration::from_millis(250));
        }
        Err(format!("another build holds {}", path.display()))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes the table of files.
fn embed(page: &Path, out: &Path) {
    let mut files = Vec::new();
    collect(page, page, &mut files);
    files.sort();
    let packed = out.join("packed");
    let _ = fs::remove_dir_all(&packed);
    fs::create_dir_all(&packed).expect("OUT_DIR can be written to");
    let mut table = String::from("&[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        let bytes = fs::read(path).expect("a file that was just listed");
        let target = packed.join(number.to_string());
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&bytes).expect("memory");
        fs::write(&target, gzip.finish().expect("memory")).expect("OUT_DIR can be written to");
        let _ = writeln!(
            table,
            "    Asset {{ path: {name:?}, mime: {:?}, etag: \"\\\"{:016x}\\\"\", gzip: include_bytes!({:?}) }},",
            mime(name),
            fingerprint(&bytes),
            target.display().to_string(),
        );
    }
    table.push_str("]\n");
    fs::write(out.join("assets.rs"), table).expect("OUT_DIR can be written to");
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    let entries = fs::read_dir(folder).expect("the page's folder");
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(root, &path, files);
        } else if let Ok(name) = path.strip_prefix(root) {
            files.push((name.to_string_lossy().replace('\\', "/"), path));
        }
    }
}

fn mime(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" | "webmanifest" => "application/json",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// FNV-1a: enough to distinguish builds of a file.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
