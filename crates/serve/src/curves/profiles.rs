//! Profiles on curves: when each was recorded, and at which step of which run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use stepscope_analyze::curves::place::Placed;
use stepscope_analyze::devices::gpu_samples::Wall;
use stepscope_read::{Progress, open};

use super::{Curves, PoisonError, Shared, read};

/// A file of a session, to be placed on a curve.
#[derive(Clone, Debug)]
pub(crate) struct ProfileAt {
    pub(crate) session: usize,
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

/// When a profile was recorded, in seconds since 1970; `None` if it has no time of day or could not be read.
#[derive(Clone, Debug)]
pub(crate) struct KnownProfile {
    bytes: u64,
    window: Option<(f64, f64)>,
}

/// Larger files are not read only to draw a mark.
const LARGEST: u64 = 256 << 20;
/// One answer takes no longer than this; the next goes on.
const BUDGET: Duration = Duration::from_millis(1500);

/// The place of each profile, as far as it is known by now.
pub(crate) fn profiles(curves: &Curves, all: &[ProfileAt]) -> Value {
    let began = Instant::now();
    let runs = curves.all();
    let folders = Folders::of(&runs);
    let (mut marks, mut complete) = (Vec::new(), true);
    for profile in all {
        let candidates = folders.runs_of(&profile.file);
        if candidates.is_empty() {
            continue;
        }
        let Some(window) = window(curves, profile, began.elapsed() < BUDGET) else {
            complete = false;
            continue;
        };
        let Some((from, until)) = window else { continue };
        marks.extend(
            candidates.iter().filter_map(|id| mark(*id, runs.get(*id)?, profile.session, from, until)),
        );
    }
    json!({"marks": marks, "complete": complete})
}

fn mark(id: usize, run: &Shared, session: usize, from: f64, until: f64) -> Option<Value> {
    let run = read(run);
    let looked = run.looked();
    let placed = Placed::of(run.reader.name(), looked.0.pace.as_ref()?, from, until)?;
    Some(
        json!({"session": session, "run": id, "start_s": from, "end_s": until, "first_step": placed.from_step, "last_step": placed.step}),
    )
}

/// Runs by their folders and by the folders above those.
#[derive(Default)]
struct Folders {
    own: FxHashMap<PathBuf, Vec<usize>>,
    above: FxHashMap<PathBuf, Vec<usize>>,
}

impl Folders {
    fn of(runs: &[Shared]) -> Self {
        let mut folders = Folders::default();
        for (id, run) in runs.iter().enumerate() {
            let run = read(run);
            let Some(folder) = run.folder().filter(|_| !run.gone) else { continue };
            folders.own.entry(folder.to_owned()).or_default().push(id);
            if let Some(above) = folder.parent() {
                folders.above.entry(above.to_owned()).or_default().push(id);
            }
        }
        folders
    }

    /// Runs that a profile may be part of: that whose folder holds it, or those right below the folder that does.
    fn runs_of(&self, file: &Path) -> &[usize] {
        let Some(parent) = file.parent() else { return &[] };
        let above = parent.ancestors().find(|folder| folder.ends_with("plugins/profile"));
        let base = above.and_then(|plugins| plugins.parent()?.parent()).unwrap_or(parent);
        let below = || above.and_then(|_| self.above.get(base));
        self.own.get(base).or_else(below).map_or(&[], Vec::as_slice)
    }
}

/// When a profile was recorded; the outer `None` if there was no time to look.
#[expect(clippy::option_option, reason = "not looked at yet is not the same as unknown")]
fn window(curves: &Curves, profile: &ProfileAt, may_read: bool) -> Option<Option<(f64, f64)>> {
    let known = || curves.profiles.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known().get(&profile.file).filter(|known| known.bytes == profile.bytes) {
        return Some(known.window);
    }
    if !may_read {
        return None;
    }
    let fits = profile.bytes <= LARGEST;
    let trace = fits.then(|| open(&profile.file, &Progress::default()).ok()).flatten();
    let window = trace.and_then(|opened| Wall::of(&opened.trace)).map(Wall::seconds);
    known().insert(profile.file.clone(), KnownProfile { bytes: profile.bytes, window });
    Some(window)
}
