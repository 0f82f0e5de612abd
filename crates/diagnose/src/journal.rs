//! The journal of experiments: a plain text file with one self-contained JSON object per line, one line per run.
//!
//! Made to be kept in version control: lines are only ever added, each stands for itself, and their order does
//! not matter, so two branches that both added runs merge by keeping all lines. A reader sorts by time, drops
//! doubles, and steps over what is no entry, such as the marks that a merge leaves behind. Each line carries a
//! sample of the steps, so that runs can be compared long after the recordings are gone.

use serde::{Deserialize, Serialize};
use stepscope_analyze::Category;
use stepscope_trace::DeviceKind;

use crate::compare::noise::{Statistic, measure, run_to_run};
use crate::compare::program::layer;
use crate::compare::{
    Around, ComparedRun, Comparison, Detail, FindingKey, Machine, Margins, OpTime, Part, Setting, Unrest,
    compare_in,
};
use crate::statistics::{Confidence, mean, median};

/// So many values stand for a run's steps at the most.
const SAMPLE: usize = 256;
/// So many categories are kept.
const TOP_CATEGORIES: usize = 3;
/// So many ops are kept, those that take longest: enough to recognise the model and the machine's load.
const TOP_OPS: usize = 256;
/// Names up to this length are kept as they are, others as a hash.
const LONGEST_NAME: usize = 48;

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
    /// Steps in the order in which they ran, in milliseconds; of more than 256, the means of 256 pieces, so that what
    /// only some steps pay is kept. (Older lines have fewer pieces, or medians of them.)
    pub sample_ms: Vec<f64>,
    /// How far single steps scatter and how far their level drifts, relative; `None` where `sample_ms` are single steps,
    /// and in older lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrest: Option<(f64, f64)>,
    /// The share of compute in the mean step, and how far their ratio strays by chance; `None` in older lines and where
    /// it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<(f64, f64)>,
    /// All categories of the mean step: key, milliseconds, and how far those may be off below and above. None in older lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<KeptPart>,
    /// The ops that take longest; none in older lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ops: Vec<KeptOp>,
    /// What else the machine did meanwhile; unknown of older lines and of profiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<KeptMachine>,
}

/// A category as a line keeps it: key, mean, how far it may be lower and higher, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptPart(String, f64, Option<f64>, Option<f64>);

impl KeptPart {
    fn of(part: &Part) -> Self {
        let kept = |value: Option<f64>| value.map(rounded);
        let key = part.category.key().to_owned();
        KeptPart(key, rounded(part.mean_ms), kept(part.below_ms), kept(part.above_ms))
    }

    /// `None` for a category that this version does not know.
    fn part(&self) -> Option<Part> {
        let KeptPart(key, mean_ms, below_ms, above_ms) = self;
        let category = Category::ALL.into_iter().find(|category| category.key() == key)?;
        Some(Part { category, mean_ms: *mean_ms, below_ms: *below_ms, above_ms: *above_ms })
    }
}

/// An op as a line keeps it: its name or a hash of it, its type, whether it runs on a device, milliseconds and number per step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptOp(String, String, bool, f64, f64);

impl KeptOp {
    fn of(op: &OpTime) -> Self {
        KeptOp(
            kept_name(&op.name),
            op.op_type.clone(),
            op.on_device,
            rounded(op.ms_per_step),
            rounded(op.count_per_step),
        )
    }

    fn op(&self) -> OpTime {
        let KeptOp(name, op_type, on_device, ms_per_step, count_per_step) = self.clone();
        OpTime { name, op_type, on_device, ms_per_step, count_per_step }
    }
}

/// Short names stay, since those of kernels say what they do. Of a path, its layer can still be told from others.
fn kept_name(name: &str) -> String {
    let short = |text: &str| format!("{:08x}", hash(text.bytes()) as u32);
    if name.len() <= LONGEST_NAME && !name.contains('/') {
        return name.to_owned();
    }
    match layer(name) {
        layer if layer.is_empty() => short(name),
        layer => format!("layer {}/{}", short(&layer), short(name)),
    }
}

/// A [`Machine`] as a line keeps it.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptMachine {
    others: Option<f64>,
    stolen: Option<f64>,
    throttled: Option<f64>,
    gpu_throttled: Option<f64>,
    cpu_ms_per_step: Option<f64>,
}

impl KeptMachine {
    fn of(machine: &Machine) -> Self {
        let kept = |value: Option<f64>| value.map(rounded);
        KeptMachine {
            others: kept(machine.others),
            stolen: kept(machine.stolen),
            throttled: kept(machine.throttled),
            gpu_throttled: kept(machine.gpu_throttled),
            cpu_ms_per_step: kept(machine.cpu_ms_per_step),
        }
    }

    fn machine(self) -> Machine {
        let KeptMachine { others, stolen, throttled, gpu_throttled, cpu_ms_per_step } = self;
        Machine { others, stolen, throttled, gpu_throttled, cpu_ms_per_step }
    }
}

impl Entry {
    /// The entry of a run.
    pub fn new(run: &ComparedRun, time_ms: i64, note: &str) -> Self {
        let sides = [run.steps_ms.clone()];
        let run_to_run = run_to_run(&sides, &[], &[run.unrest()], Confidence::default());
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
            unrest: (run.steps_ms.len() > SAMPLE).then(|| {
                let unrest = run.unrest();
                (rounded(unrest.scatter), rounded(unrest.drift))
            }),
            around: run.around().map(|around| (rounded(around.compute), rounded(around.deviation))),
            parts: all_parts(run),
            ops: top_ops(run),
            machine: run.machine.as_ref().map(KeptMachine::of),
        }
    }

    /// The line that holds it, without its end.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// The run as far as it is kept, for a comparison.
    pub fn run(&self) -> ComparedRun {
        let kind = |key: &str| {
            let kinds = [DeviceKind::Cpu, DeviceKind::Gpu, DeviceKind::Tpu];
            kinds.into_iter().find(|kind| kind_key(*kind) == key).unwrap_or(DeviceKind::Other)
        };
        let verdict = self.verdict.iter().map(|id| (id.clone(), self.subject.clone()));
        let kept = self.findings.iter().cloned();
        let verdict = verdict.filter(|_| self.findings.is_empty());
        let findings = verdict.chain(kept).map(|(id, subject)| FindingKey { id, subject });
        ComparedRun {
            label: self.path.clone(),
            steps_ms: self.sample_ms.iter().copied().filter(|ms| ms.is_finite() && *ms > 0.0).collect(),
            kept_unrest: self.unrest.map(|(scatter, drift)| Unrest { scatter, drift }),
            kept_around: self.around.map(|(compute, deviation)| Around { compute, deviation }),
            kept_parts: self.parts.iter().filter_map(KeptPart::part).collect(),
            ops: self.ops.iter().map(KeptOp::op).collect(),
            machine: self.machine.map(KeptMachine::machine),
            findings: findings.collect(),
            setting: Setting {
                framework: None,
                versions: self.versions.clone(),
                devices: self.devices.iter().map(|(key, name)| (kind(key), name.clone())).collect(),
                hosts: self.hosts,
                batch_size: self.batch_size,
                origin: None,
            },
            ..ComparedRun::default()
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

fn top_categories(run: &ComparedRun) -> Vec<(String, f64)> {
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

fn all_parts(run: &ComparedRun) -> Vec<KeptPart> {
    let known = Category::ALL.into_iter().filter_map(|category| run.part(category));
    known.filter(|part| part.mean_ms > 0.0).map(|part| KeptPart::of(&part)).collect()
}

fn top_ops(run: &ComparedRun) -> Vec<KeptOp> {
    let mut all: Vec<&OpTime> = run.ops.iter().collect();
    all.sort_by(|a, b| b.ms_per_step.total_cmp(&a.ms_per_step).then_with(|| a.name.cmp(&b.name)));
    all.into_iter().take(TOP_OPS).map(KeptOp::of).collect()
}

/// Tells recordings apart: two never share it, one recording always has the same.
fn fingerprint(steps: &[f64], time_ms: i64) -> String {
    let bytes = steps.iter().flat_map(|ms| ms.to_bits().to_le_bytes()).chain(time_ms.to_le_bytes());
    format!("{:016x}", hash(bytes))
}

/// FNV-1a.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
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
    /// Reads a journal. A byte that is no text costs its line.
    pub fn parse(text: &[u8]) -> Self {
        let mut journal = Journal::default();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || MERGE_MARKS.iter().any(|mark| line.starts_with(mark.as_bytes())) {
                continue;
            }
            match serde_json::from_slice::<Entry>(line) {
                Ok(entry) => journal.entries.push(entry),
                Err(_) => journal.unreadable.push(number + 1),
            }
        }
        journal.entries.sort_by(|a, b| (a.time_ms, &a.fingerprint).cmp(&(b.time_ms, &b.fingerprint)));
        journal.entries.dedup_by(|a, b| (&a.fingerprint, &a.note) == (&b.fingerprint, &b.note));
        journal
    }

    /// Whether this run was added before. One without a time of its own is recognised by its steps.
    pub fn has(&self, entry: &Entry) -> bool {
        let same = |known: &Entry| {
            known.note == entry.note
                && (known.fingerprint == entry.fingerprint
                    || (!known.sample_ms.is_empty()
                        && (&known.path, known.steps) == (&entry.path, entry.steps)
                        && known.sample_ms == entry.sample_ms))
        };
        self.entries.iter().any(same)
    }

    /// The last runs, each with its comparison to the one before it; the first of all has none.
    pub fn compared(&self, last: usize) -> Vec<(&Entry, Option<Comparison>)> {
        let skipped = self.entries.len().saturating_sub(last);
        let before = std::iter::once(None).chain(self.entries.iter().map(Some)).skip(skipped);
        let margins = Margins::default();
        let compared = |(entry, before): (_, Option<&Entry>)| {
            let entry: &Entry = entry;
            let comparison =
                before.map(|before| compare_in(Detail::Verdict, &[before.run()], &[entry.run()], margins));
            (entry, comparison)
        };
        self.entries.iter().skip(skipped).zip(before).map(compared).collect()
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
        let journal = Journal::parse(line.as_bytes());
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
        let journal = Journal::parse(merged.as_bytes());
        assert_eq!(journal.unreadable, [0; 0]);
        assert_eq!(
            journal.entries.iter().map(|entry| entry.time_ms).collect::<Vec<_>>(),
            [1_000, 2_000, 3_000]
        );
        let verdicts: Vec<Option<Verdict>> = journal
            .compared(usize::MAX)
            .iter()
            .map(|(_, comparison)| comparison.as_ref().map(|it| it.verdict))
            .collect();
        assert_eq!(verdicts, [None, Some(Verdict::Same), Some(Verdict::Faster)]);
    }

    #[test]
    fn a_journal_draws_only_what_decides_and_says_what_a_full_comparison_says() {
        let mut entries = Vec::new();
        for (seed, level) in [(1, 10.0), (2, 10.4), (3, 9.0), (4, 9.1), (5, 30.0)] {
            entries.push(entry(seed, level, "change"));
            entries.push(Entry::new(
                &noisy_run(seed + 50, 9, level, 0.4),
                1_000 * seed as i64 + 500,
                "short",
            ));
        }
        let journal = Journal { entries, ..Journal::default() };
        let mut before: Option<&Entry> = None;
        for (entry, brief) in journal.compared(usize::MAX) {
            if let (Some(before), Some(brief)) = (before, brief) {
                let full = crate::compare::compare(&[before.run()], &[entry.run()], Margins::default());
                assert_eq!((brief.verdict, brief.decided_by), (full.verdict, full.decided_by));
                assert_eq!(brief.deciding(), full.deciding());
                assert_eq!(brief.comparability, full.comparability);
                let undecided = !matches!(brief.by_steps, Verdict::Faster | Verdict::Slower | Verdict::Same);
                assert!(brief.p90.is_none() && brief.breakdown.is_empty());
                assert!(
                    brief.median.is_none() || undecided || brief.decided_by != crate::compare::Basis::Mean
                );
            }
            before = Some(entry);
        }
    }

    #[test]
    fn long_runs_keep_a_short_sample_and_the_interval_holds_the_mean() {
        let entry = Entry::new(&noisy_run(7, 600, 12.0, 0.05), 7_000, "");
        assert!(entry.sample_ms.len() <= SAMPLE && entry.steps == 600);
        let single = Entry::new(&noisy_run(7, 200, 12.0, 0.05), 7_000, "").run().unrest().scatter;
        assert!((entry.run().unrest().scatter / single - 1.0).abs() < 0.2, "that of single steps");
        let (low, middle, high) = (entry.low_ms.unwrap(), entry.mean_ms.unwrap(), entry.high_ms.unwrap());
        assert!(low < middle && middle < high && high / low < 1.12);
        assert!(entry.line().unwrap().len() < 3_000);
    }

    #[test]
    fn strange_lines_are_named_and_harmless() {
        let journal = Journal::parse(b"{\"v\": 1}\nhello\n\n");
        assert_eq!(journal.unreadable, [1, 2]);
        let empty = Entry::new(&ComparedRun::default(), 0, "no steps");
        assert_eq!(Journal::parse(empty.line().unwrap().as_bytes()).entries, [empty]);
    }

    #[test]
    fn steps_without_compute_have_an_entry() {
        for shares in [&[(Category::Input, 2.5)][..], &[]] {
            let run = run_of(shares, 30);
            let entry = Entry::new(&run, 5, "waits only");
            assert_eq!(entry.run().around(), None, "nothing to relate the step to");
            let journal = Journal { entries: vec![entry.clone(), entry], ..Journal::default() };
            assert_eq!(journal.compared(2).len(), 2);
        }
    }

    #[test]
    fn a_bad_byte_costs_its_line_alone() {
        let lines: Vec<String> = (1..4).map(|seed| entry(seed, 10.0, "note").line().unwrap()).collect();
        let mut bytes = lines.join("\n").into_bytes();
        let second = lines[0].len() + 1 + lines[1].find("note").unwrap() + 8;
        bytes[second] = 0xff;
        let journal = Journal::parse(&bytes);
        assert_eq!((journal.entries.len(), &journal.unreadable[..]), (2, &[2][..]));
    }

    #[test]
    fn a_run_is_known_by_its_time_or_its_steps() {
        let first = entry(1, 10.0, "note");
        let journal = Journal::parse(first.line().unwrap().as_bytes());
        assert!(journal.has(&first));
        let later = Entry::new(&noisy_run(1, 200, 10.0, 0.05), 99_000, "note");
        assert!(journal.has(&later), "the same steps, added again");
        assert!(!journal.has(&Entry { note: "another".to_owned(), ..first }));
        assert!(!journal.has(&entry(2, 10.0, "note")));
    }

    #[test]
    fn the_last_runs_are_compared_with_those_before_them() {
        let text: Vec<String> = (1..9).map(|seed| entry(seed, 10.0, "note").line().unwrap()).collect();
        let journal = Journal::parse(text.join("\n").as_bytes());
        let last = journal.compared(2);
        assert_eq!(last.iter().map(|(entry, _)| entry.time_ms).collect::<Vec<_>>(), [7_000, 8_000]);
        assert!(last.iter().all(|(_, comparison)| comparison.is_some()));
        assert!(journal.compared(8)[0].1.is_none());
    }
}
