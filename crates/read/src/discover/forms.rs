//! One report of Nsight Compute in several forms: `gemm.ncu-rep` and what was printed of it, `gemm.raw.csv`, `gemm.details.csv`,
//! `gemm.txt`. They are one recording, and the most complete form is read.
//!
//! Names alone decide, in one folder: the same name up to what says which form it is. Reports of two runs have two names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stepscope_trace::Delivers;

use super::{ProfileFile, file_name};

/// Endings of the forms, the most complete first.
const ENDINGS: [&str; 4] = [".ncu-rep", ".csv", ".txt", ".log"];
/// Pages of a report that are printed by themselves, the most complete first.
const PAGES: [&str; 4] = ["raw", "details", "source", "session"];

/// Files without further forms of the same report.
pub(super) fn one_per_report(files: Vec<ProfileFile>) -> Vec<ProfileFile> {
    let key = |file: &ProfileFile| {
        let folder = file.path.parent().unwrap_or(Path::new("")).to_owned();
        (file.format.delivers == Delivers::Counters).then(|| (folder, form_of(&file_name(&file.path)).0))
    };
    // How complete the best form of each report is, and which it is.
    let mut best: BTreeMap<(PathBuf, String), (usize, PathBuf)> = BTreeMap::new();
    for file in &files {
        let Some(key) = key(file) else { continue };
        let own = (form_of(&file_name(&file.path)).1, file.path.clone());
        match best.get_mut(&key) {
            Some(known) if own < *known => *known = own,
            Some(_) => {}
            None => {
                best.insert(key, own);
            }
        }
    }
    let is_best = |file: &ProfileFile| {
        key(file).is_none_or(|key| best.get(&key).is_none_or(|(_, path)| *path == file.path))
    };
    files.into_iter().filter(is_best).collect()
}

/// The name of a report without its form, and how complete that form is: 0 is the report itself.
fn form_of(name: &str) -> (String, usize) {
    let found =
        ENDINGS.iter().enumerate().find_map(|(place, ending)| Some((place, name.strip_suffix(ending)?)));
    let Some((ending, mut stem)) = found else { return (name.to_owned(), 0) };
    // `gemm.ncu-rep.csv` is of `gemm.ncu-rep`.
    if ending > 0 {
        stem = stem.strip_suffix(".ncu-rep").unwrap_or(stem);
    }
    let page = PAGES.iter().enumerate().find_map(|(place, page)| {
        let rest = stem.strip_suffix(page).filter(|_| ending > 0)?;
        Some((place, rest.strip_suffix(['.', '_', '-'])?))
    });
    match page.filter(|(_, stem)| !stem.is_empty()) {
        Some((page, stem)) => (stem.to_owned(), ending * (PAGES.len() + 1) + page),
        None => (stem.to_owned(), ending * (PAGES.len() + 1) + if ending == 0 { 0 } else { PAGES.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::form_of;

    #[test]
    fn forms_of_one_report_have_one_name_and_an_order() {
        let names = ["gemm.ncu-rep", "gemm.raw.csv", "gemm_details.csv", "gemm.csv", "gemm.txt"];
        let forms: Vec<(String, usize)> = names.iter().map(|name| form_of(name)).collect();
        assert!(forms.iter().all(|(stem, _)| stem == "gemm"), "{forms:?}");
        assert!(forms.is_sorted_by(|(_, a), (_, b)| a < b), "{forms:?}");
        assert_eq!(form_of("gemm.ncu-rep.csv").0, "gemm");
    }

    #[test]
    fn other_names_are_other_reports() {
        for name in ["raw.csv", "gemm2.ncu-rep", "gemm_raw.ncu-rep", "gemmraw.csv", "gemm.json"] {
            assert_ne!(form_of(name).0, "gemm", "{name}");
            assert_ne!(form_of(name).0, "", "{name}");
        }
    }
}
