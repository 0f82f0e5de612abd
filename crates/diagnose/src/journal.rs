//! The journal of experiments: a plain text file with one self-contained JSON object per line, one line per run.
//!
//! Made to be kept in version control: lines are only ever added, each stands for itself, and their order does
//! not matter, so two branches that both added runs merge by keeping all lines. A reader sorts by time, drops
//! doubles, and steps over what is no entry, such as the marks that a merge leaves behind. Each line carries a
//! sample of the steps, so that runs can be compared long after the recordings are gone.

use serde::{Deserialize, Serialize};
use stepscope_analyze::Category;
use stepscope_trace::DeviceKind;

use crate::compare::noise::{Statistic, measure};
use crate::compare::{Comparison, FindingKey, Margins, Run, Setting, compare};
use crate::statistics::{mean, median};

/// So many values stand for a run's steps at the most.
const SAMPLE: usize = 64;
/// So many categories are kept.
const TOP_CATEGORIES: usize = 3;

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The format's version.
    pub v: u32,
    /// When it was recorded, in milliseconds since 1970; when it was added, where the recording does not say.
    pub time_ms: i64,
    /// What was changed, in the user's words.
    pub note: String,
    /// Where the recording lay.
    pub path: String,
    /// Tells recordings apart: from the steps and the time.
    pub fingerprint: String,
    /// How many steps count.
    pub steps: usize,
    /// The mean step, which is what is paid. Lines from before it was kept have none.
    #[serde(default)]
    pub mean_ms: Option<f64>,
    /// The median step.
    pub median_ms: Option<f64>,
    /// The lower end of the mean's 95 % interval, as another run of the same program might have had it; of the
    /// median's where there is no mean.
    pub low_ms: Option<f64>,
    /// The upper end.
    pub high_ms: Option<f64>,
    /// The categories that own most of the step, in milliseconds.
    pub breakdown: Vec<(String, f64)>,
    /// The verdict's id.
    pub verdict: Option<String>,
    /// What it is about.
    pub subject: Option<String>,
    /// All findings, the verdict first: id and what it is about. Lines from before they were kept have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<(String, Option<String>)>,
    /// Who wrote the trace.
    pub framework: Option<String>,
    /// Versions of software.
    pub versions: Vec<(String, String)>,
    /// The devices at work: sort and model.
    pub devices: Vec<(String, String)>,
    /// How many hosts.
    pub hosts: usize,
    /// Examples in a batch.
    pub batch_size: Option<u64>,
    /// Steps in the order in which they ran, in milliseconds; of more than 64, the means of 64 pieces, so that what
    /// only some steps pay is kept. (Older lines have medians of pieces.)
    pub sample_ms: Vec<f64>,
}

impl Entry {
    /// The entry of a run.
    pub fn new(run: &Run, time_ms: i64, note: &str) -> Self {
        let sides = [run.steps_ms.clone()];
        let run_to_run = crate::compare::noise::run_to_run(&sides, &[]);
        // A run against a copy of itself has twice the variance of one run.
        let width = measure(&sides, &sides, Statistic::Mean, run_to_run).and_then(|measured| {
            measured.from_steps.map(|steps| steps.hypot(measured.from_runs) / std::f64::consts::SQRT_2)
        });
        let paid = mean(&run.steps_ms);
        let end = |sign: f64| Some(rounded(paid? * (sign * width?).exp()));
        let verdict = run.findings.first();
        let setting = &run.setting;
        Entry {
            v: 1,
            time_ms,
            note: note.split_whitespace().collect::<Vec<_>>().join(" "),
            path: run.label.clone(),
            fingerprint: fingerprint(&run.steps_ms, time_ms),
            steps: run.steps_ms.len(),
            mean_ms: paid.map(rounded),
            median_ms: median(&run.steps_ms).map(rounded),
            low_ms: end(-1.0),
            high_ms: end(1.0),
            breakdown: top_categories(run),
            verdict: verdict.map(|finding| finding.id.clone()),
            subject: verdict.and_then(|finding| finding.subject.clone()),
            findings: run.findings.iter().map(|it| (it.id.clone(), it.subject.clone())).collect(),
            framework: setting.framework.map(|framework| format!("{framework:?}")),
            versions: setting.versions.clone(),
            devices: setting
                .devices
                .iter()
                .map(|(kind, name)| (kind_key(*kind).to_owned(), name.clone()))
                .collect(),
            hosts: setting.hosts,
            batch_size: setting.batch_size,
            sample_ms: sample(&run.steps_ms),
        }
    }

    /// The line that holds it, without its end.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The run as far as it is kept, for a comparison.
    pub fn run(&self) -> Run {
        let kind = |key: &str| {
            let kinds = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Tpu];
            kinds.into_iter().find(|kind| kind_key(*kind) == key).unwrap_or(DeviceKind::Other)
        };
        let verdict = self.verdict.iter().map(|id| (id.clone(), self.subject.clone()));
        let kept = self.findings.iter().cloned();
        let verdict = verdict.filter(|_| self.findings.is_empty());
        let findings = verdict.chain(kept).map(|(id, subject)| FindingKey { id, subject });
        Run {
            label: self.path.clone(),
            steps_ms: self.sample_ms.iter().copied().filter(|ms| ms.is_finite() && *ms > 0.0).collect(),
            findings: findings.collect(),
            setting: Setting {
                framework: None,
                versions: self.versions.clone(),
                devices: self.devices.iter().map(|(key, name)| (kind(key), name.clone())).collect(),
                hosts: self.hosts,
                batch_size: self.batch_size,
                origin: None,
            },
            ..Run::default()
        }
    }
}

fn kind_key(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Gpu => "gpu",
        DeviceKind::Tpu => "tpu",
        DeviceKind::Other => "other",
    }
}

/// Five significant digits: more would be noise, and lines stay short.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

fn sample(steps: &[f64]) -> Vec<f64> {
    let size = steps.len().div_ceil(SAMPLE).max(1);
    steps.chunks(size).filter_map(mean).map(rounded).collect()
}

fn top_categories(run: &Run) -> Vec<(String, f64)> {
    let mut all: Vec<(Category, f64)> = Category::ALL
        .into_iter()
        .map(|category| (category, run.mean_category_ms(category)))
        .filter(|(_, ms)| *ms > 0.0)
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter()
        .take(TOP_CATEGORIES)
        .map(|(category, ms)| (category.key().to_owned(), rounded(ms)))
        .collect()
}

/// FNV-1a over the steps and the time: two recordings never share it, one recording always has the same.
fn fingerprint(steps: &[f64], time_ms: i64) -> String {
    let bytes = steps.iter().flat_map(|ms| ms.to_bits().to_le_bytes()).chain(time_ms.to_le_bytes());
    let hash = bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    format!("{hash:016x}")
}

/// A journal as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    /// The runs, by time.
    pub entries: Vec<Entry>,
    /// Numbers of lines, from 1, that are neither entries nor what a merge leaves behind.
    pub unreadable: Vec<usize>,
}

/// The marks that a merge leaves behind where nobody has resolved it.
const MERGE_MARKS: [&str; 4] = ["<<<<<<<", "=======", ">>>>>>>", "|||||||"];

impl Journal {
    /// Reads a journal's text.
    pub fn parse(text: &str) -> Self {
        let mut journal = Journal::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || MERGE_MARKS.iter().any(|mark| line.starts_with(mark)) {
                continue;
            }
            match serde_json::from_str::<Entry>(line) {
                Ok(entry) => journal.entries.push(entry),
                Err(_) => journal.unreadable.push(number + 1),
            }
        }
        journal.entries.sort_by(|a, b| (a.time_ms, &a.fingerprint).cmp(&(b.time_ms, &b.fingerprint)));
        journal.entries.dedup_by(|a, b| (&a.fingerprint, &a.note) == (&b.fingerprint, &b.note));
        journal
    }

    /// Each run with its comparison to the one before it; the first has none.
    pub fn compared(&self) -> Vec<(&Entry, Option<Comparison>)> {
        let before = std::iter::once(None).chain(self.entries.iter().map(Some));
        let compared = |(entry, before): (_, Option<&Entry>)| {
            let entry: &Entry = entry;
            let comparison =
                before.map(|before| compare(&[before.run()], &[entry.run()], Margins::default()));
            (entry, comparison)
        };
        self.entries.iter().zip(before).map(compared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Verdict;
    use crate::compare::tests::{noisy_run, run_of};

    fn entry(seed: u64, level: f64, note: &str) -> Entry {
        Entry::new(&noisy_run(seed, 200, level, 0.05), 1_000 * seed as i64, note)
    }

    #[test]
    fn entries_survive_their_line() {
        let mut run = run_of(&[(Category::Compute, 9.0), (Category::Input, 2.5)], 30);
        run.findings.push(FindingKey { id: "op-dominates".to_owned(), subject: Some("MatMul".to_owned()) });
        run.findings.push(FindingKey { id: "step-variance".to_owned(), subject: None });
        run.setting.devices.push((DeviceKind::Gpu, "A100".to_owned()));
        let entry = Entry::new(&run, 5, "two\nlines\t\"quoted\"");
        let line = entry.line().unwrap();
        assert!(!line.contains('\n'));
        let journal = Journal::parse(&line);
        assert_eq!(journal.entries, std::slice::from_ref(&entry));
        assert_eq!(entry.breakdown, [("compute".to_owned(), 9.0), ("input".to_owned(), 2.5)]);
        assert_eq!(entry.run().setting.devices, run.setting.devices);
        assert_eq!(entry.run().findings, run.findings, "all of them");
        let old = Entry { findings: Vec::new(), ..entry };
        assert_eq!(old.run().findings, run.findings[..1], "an older line has the verdict alone");
    }

    #[test]
    fn two_branches_merge_by_keeping_all_lines() {
        let lines: Vec<String> = [(1, 10.0), (2, 10.0), (3, 9.0)]
            .map(|(seed, level)| entry(seed, level, "change").line().unwrap())
            .to_vec();
        let merged = format!(
            "{}\n<<<<<<< ours\n{}\n=======\n{}\n{}\n>>>>>>> theirs\n",
            lines[0], lines[2], lines[1], lines[0]
        );
        let journal = Journal::parse(&merged);
        assert_eq!(journal.unreadable, [0; 0]);
        assert_eq!(
            journal.entries.iter().map(|entry| entry.time_ms).collect::<Vec<_>>(),
            [1_000, 2_000, 3_000]
        );
        let verdicts: Vec<Option<Verdict>> = journal
            .compared()
            .iter()
            .map(|(_, comparison)| comparison.as_ref().map(|it| it.verdict))
            .collect();
        assert_eq!(verdicts, [None, Some(Verdict::Same), Some(Verdict::Faster)]);
    }

    #[test]
    fn long_runs_keep_a_short_sample_and_the_interval_holds_the_mean() {
        let entry = entry(7, 12.0, "");
        assert!(entry.sample_ms.len() <= SAMPLE && entry.steps == 200);
        let (low, middle, high) = (entry.low_ms.unwrap(), entry.mean_ms.unwrap(), entry.high_ms.unwrap());
        assert!(low < middle && middle < high && high / low < 1.12);
        assert!(entry.line().unwrap().len() < 2_000);
    }

    #[test]
    fn strange_lines_are_named_and_harmless() {
        let journal = Journal::parse("{\"v\": 1}\nhello\n\n");
        assert_eq!(journal.unreadable, [1, 2]);
        let empty = Entry::new(&Run::default(), 0, "no steps");
        assert_eq!(Journal::parse(&empty.line().unwrap()).entries, [empty]);
    }
}
