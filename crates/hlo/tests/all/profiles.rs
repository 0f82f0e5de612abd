//! The programs of real profiles.

use std::io::Read;
use std::path::Path;

use serde_json::Value as Json;
use stepscope_read::{Input, Progress, Reader, XPlaneReader};
use stepscope_testkit::corpus::files_below;
use stepscope_trace::Value;

/// Name and bytes of every program in a profile, or in the first one below a folder.
pub(crate) fn programs(path: &Path) -> Vec<(String, Vec<u8>)> {
    if path.is_file() {
        return programs_of(path);
    }
    let profile = files_below(path).into_iter().find(|path| path.to_string_lossy().ends_with(".xplane.pb"));
    profile.map(|profile| programs_of(&profile)).unwrap_or_default()
}

fn programs_of(profile: &Path) -> Vec<(String, Vec<u8>)> {
    let trace = XPlaneReader.read(&Input::open(profile).unwrap(), &Progress::new()).unwrap();
    let mut found = Vec::new();
    for (name, args) in trace.attachments() {
        args.visit(|key, value| {
            if trace.strings().get(key) == "Hlo Proto"
                && let Value::Bytes(bytes) = value
            {
                found.push((trace.strings().get(name).to_owned(), bytes.to_vec()));
            }
        });
    }
    found
}

pub(crate) fn json(path: &Path) -> Json {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        return serde_json::from_str(&text).unwrap();
    }
    serde_json::from_slice(&bytes).unwrap()
}
