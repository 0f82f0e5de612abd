//! Doors for fuzzing: checksums keep damage out, so what lies behind them is reached with checksums that fit.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, compressed, frames, unpacked};
use crate::plan::{Options, Recording, plan};
use crate::set::Set;

/// A partial with one host and one record of this body.
pub fn framed(body: &[u8]) -> Vec<u8> {
    let all = || -> Result<Vec<u8>, FleetError> {
        let mut set = Set::new();
        for (kind, id) in [(Kind::Host, "a"), (Kind::Recording, "b")] {
            let recording = Recording {
                id: id.to_owned(),
                job: "job".to_owned(),
                session: id.to_owned(),
                folder: String::new(),
                hosts: 1,
                at: 0,
                dated: false,
                labels: BTreeMap::new(),
            };
            let header = Header { id: id.to_owned(), recording: Some(recording), ..Header::new(kind) };
            set.insert(Frame::new(header, body)?);
        }
        set.write()
    };
    all().unwrap_or_default()
}

/// The same for a body that is not compressed yet.
pub fn packed(body: &[u8]) -> Vec<u8> {
    framed(&compressed(body))
}

/// The partial of a folder, and the content of each of its entries.
pub fn seeds(folder: &Path) -> Vec<Vec<u8>> {
    let works =
        plan(&[folder.to_owned()], &Options { group_bytes: 1, ..Options::default() }).unwrap_or_default();
    let mut seeds: Vec<Vec<u8>> =
        works.iter().filter_map(|work| crate::partial(work, &crate::Workers::of(1)).ok()).collect();
    let contents = seeds.iter().flat_map(|seed| frames(seed).unwrap_or_default());
    let contents: Vec<Vec<u8>> = contents.filter_map(|frame| unpacked(frame.body()).ok()).collect();
    seeds.extend(contents);
    seeds
}
