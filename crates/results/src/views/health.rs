//! `stepscope health`: problems of the recording itself in words: the problem, its cause if known, and its fix.

use stepscope_analyze::recording::health::{Issue, Severity, Trouble, health};
use stepscope_diagnose::complaints;

use super::{Group, Hosts, View, each_host};
use crate::format::{duration_ms, plural, printable, thousands, times};
use crate::table::{Field, Prose, Table, Tone, columns, described};

pub(super) const VIEW: View = View {
    name: "health",
    title: "Health",
    group: Group::Hardware,
    question: "Is this recording reliable?",
    about: "Show problems of the recording itself: errors, lost or repaired data, odd events",
    after_help: "Examples:\n  \
        stepscope health logs/                  what may be missing from this profile, and how to fix it\n  \
        stepscope health logs/ --filter error   only problems that make conclusions unreliable\n  \
        stepscope health logs/ --json           JSON for scripts",
    record: &[],
    events: None,
    recording: true,
    sql: None,
    columns: || described(columns()),
    members: "",
    table: of_hosts,
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        id.known: Text "id", "the public name of the problem" => line.issue.trouble.id();
        severity.known.one_of(&["error", "warning", "info"]): Text "severity", "how bad it is" => severity(line.issue.trouble.severity());
        message.known: Name "message", "what is wrong" => line.worded.message.as_str();
        count: Count "count", "how often" => line.issue.count;
        offset: Id "offset", "where in the file, in bytes" => line.issue.offset;
        fix: Name "fix", "what to do" => line.worded.fix.clone();
        host.known: Text "host", "the host" => line.issue.host.as_str();
    }
}

/// One problem in words. The report's `health` rows are built from these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worded {
    /// What the problem is and, if known, its cause.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// A problem and its words.
struct Line<'a> {
    issue: &'a Issue,
    worded: Worded,
}

fn of_hosts(hosts: &dyn Hosts) -> Table {
    let per_host = each_host(hosts, |context| (health(context.trace, &context.host), context.trace.events()));
    let (mut issues, mut events): (Vec<Vec<Issue>>, Vec<u64>) = per_host.into_iter().unzip();
    let unread = hosts.unread();
    events.extend(unread.iter().map(|_| 0));
    issues.push(unread);
    table(&issues.concat(), &events)
}

/// One row per problem, worst first. `events` is the number of events of each file.
fn table(issues: &[Issue], events: &[u64]) -> Table {
    let fields = columns();
    let mut table = Table::of("health", &fields, []);
    let mut worst_first: Vec<&Issue> = issues.iter().collect();
    worst_first.sort_by_key(|issue| std::cmp::Reverse(issue.trouble.severity()));
    table.headline = Some(headline(&worst_first, events));
    for issue in worst_first {
        let line = Line { issue, worded: words(issue) };
        table.add_prose(&fields, &line, prose(issue, &line.worded, events.len() > 1));
    }
    table
}

/// Public id of a severity.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

fn headline(issues: &[&Issue], events: &[u64]) -> String {
    let of = |severity: Severity| {
        issues.iter().filter(|issue| issue.trouble.severity() == severity).count() as u64
    };
    let (errors, warnings, remarks) = (of(Severity::Error), of(Severity::Warning), of(Severity::Info));
    let events = plural(events.iter().sum(), "event", "events");
    let counted = [
        (errors, plural(errors, "error", "errors")),
        (warnings, plural(warnings, "warning", "warnings")),
        (remarks, plural(remarks, "note", "notes")),
    ];
    let counted: Vec<String> =
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    match issues.first() {
        None => format!("healthy: no problems found in this recording of {events}"),
        Some(_) if errors + warnings == 0 => {
            format!("healthy: this recording of {events} is reliable ({})", counted.join(", "))
        }
        Some(worst) => format!("not healthy ({}): {}", counted.join(", "), words(worst).message),
    }
}

fn prose(issue: &Issue, worded: &Worded, with_host: bool) -> Prose {
    let (tone, lead) = match issue.trouble.severity() {
        Severity::Error => (Tone::Error, "error  "),
        Severity::Warning => (Tone::Warning, "warning"),
        Severity::Info => (Tone::Info, "info   "),
    };
    let host = if with_host { format!("{}: ", issue.host) } else { String::new() };
    let place = issue.offset.map_or(String::new(), |offset| format!(" (from byte {offset})"));
    let fix = worded.fix.as_ref().map_or(String::new(), |fix| format!("\n         fix: {fix}"));
    let rest = format!("  {host}{}{place}{fix}", worded.message);
    Prose { tone, lead: lead.to_owned(), rest }
}

/// The words for one problem.
pub fn words(issue: &Issue) -> Worded {
    let detail = printable(issue.detail.trim());
    remark(issue, &detail).unwrap_or_else(|| {
        let (message, fix) = of_file(issue, &detail).unwrap_or_else(|| of_events(issue, &detail));
        Worded { message, fix: Some(fix.to_owned()) }
    })
}

/// `3 events overlap`.
fn events(issue: &Issue, verb: &str) -> String {
    let count = issue.count.unwrap_or(1);
    let ending = if count == 1 && !verb.is_empty() { "s" } else { "" };
    format!("{} {verb}{ending}", plural(count, "event", "events"))
}

/// `1 event has`, `3 events have`.
fn have(issue: &Issue) -> String {
    let count = issue.count.unwrap_or(1);
    format!("{} {}", plural(count, "event", "events"), if count == 1 { "has" } else { "have" })
}

/// Problems without a fix, and those with words of their own.
fn remark(issue: &Issue, detail: &str) -> Option<Worded> {
    Some(match issue.trouble {
        Trouble::CollectionError | Trouble::CollectionWarning => complaint(issue, detail),
        Trouble::Repaired => plain(repair(issue, detail)),
        Trouble::UnknownContent => plain(format!(
            "{} of a kind that this version of stepscope does not know ({detail})",
            parts(issue)
        )),
        Trouble::Overlapping => plain(format!(
            "{} with others on the same thread or stream; shown in separate lanes",
            events(issue, "overlap")
        )),
        Trouble::ZeroLength => plain(format!("{} no duration", have(issue))),
        Trouble::ClockUnknown => {
            plain("the file only has relative times: the recording date is unknown".to_owned())
        }
        _ => return None,
    })
}

/// Problems of the file as a whole, with their fixes.
fn of_file(issue: &Issue, detail: &str) -> Option<(String, &'static str)> {
    Some(match issue.trouble {
        Trouble::Damaged => (
            format!("the file is damaged: {detail}"),
            "copy the file again, or record again; the results are partial",
        ),
        Trouble::Unread => (
            format!("the host is missing: {detail}"),
            "check the permissions of the file, or copy it again; the results are partial",
        ),
        Trouble::Changed => (
            "the file changed while it was read".to_owned(),
            "wait until it is complete, then run the command again; the results are partial",
        ),
        Trouble::OverBudget => (
            format!(
                "reading stopped after {} {detail}, the limit for a file of this size",
                thousands(issue.count.unwrap_or(0))
            ),
            "if you trust the file, raise the limit, for example with `--budget 16GB`; the results are partial",
        ),
        Trouble::NoEvents => (
            "the recording contains no events".to_owned(),
            "record for longer while steps are running; for remote captures, check the address and port",
        ),
        Trouble::NoDeviceEvents => (no_device(detail), NO_DEVICE_FIX),
        Trouble::DroppedEvents => (dropped(issue, detail), "record fewer steps, or less detail"),
        Trouble::EventCap => (
            format!(
                "the recording ends at exactly {}, a limit of the profiler: the rest is missing",
                events(issue, "").trim()
            ),
            "record fewer steps, or raise the profiler's limit",
        ),
        Trouble::ShortCapture => {
            let span = issue.span.map_or(String::new(), |span| format!(": {}", duration_ms(span.ms())));
            (format!("the capture is very short{span}"), "record at least ten steps after the warm-up")
        }
        Trouble::OtherTime => (
            format!("{detail} was sampled more than a day before or after the timeline, and is excluded"),
            "open it separately, or put the log of the same run beside the timeline",
        ),
        Trouble::UnnamedColumns => (
            format!(
                "{} neither a name nor a unit, so the numbers cannot be identified",
                plural(issue.count.unwrap_or(1), "column has", "columns have")
            ),
            "record with a header: remove `noheader` from `--format`",
        ),
        Trouble::FewCounters => (
            "kernels were profiled without the counters that show their bottleneck".to_owned(),
            "record with `ncu --set full`, or at least the sections SpeedOfLight, Occupancy and \
             MemoryWorkloadAnalysis",
        ),
        Trouble::IdleDevices => (
            format!(
                "{} no events, but others do",
                plural(issue.count.unwrap_or(1), "device has", "devices have")
            ),
            "check whether the job was supposed to use them",
        ),
        _ => return None,
    })
}

/// Problems of single events, with their fixes.
fn of_events(issue: &Issue, detail: &str) -> (String, &'static str) {
    let on = if detail.is_empty() { String::new() } else { format!(" on {detail}") };
    match issue.trouble {
        Trouble::OutsideCapture => (
            format!("{} outside the capture window", events(issue, "lie")),
            "use the steps in the middle; the first and last are incomplete",
        ),
        Trouble::OverLong => (
            format!("{} longer than the whole capture", events(issue, "last")),
            "do not trust their durations",
        ),
        Trouble::TimeOutOfRange => (
            format!("{} times beyond 106 days{on}, moved to the limit", have(issue)),
            "record again; the clock was wrong",
        ),
        Trouble::NegativeDuration => (
            format!("{} an end before the start{on}, shown as instants", have(issue)),
            "do not rely on microsecond precision for this track",
        ),
        Trouble::DanglingReference => (
            format!("{} to something that the file does not define ({detail})", events(issue, "refer")),
            "record again; part of the file is missing",
        ),
        _ => (
            format!("{} their matching start or end", events(issue, "lack")),
            "this is normal at the start and end of a capture; otherwise events were dropped",
        ),
    }
}

fn plain(message: String) -> Worded {
    Worded { message, fix: None }
}

fn parts(issue: &Issue) -> String {
    plural(issue.count.unwrap_or(1), "part", "parts")
}

const NO_DEVICE_FIX: &str = "make the device's tracing library available (NVIDIA: CUPTI on the LD_LIBRARY_PATH; \
                             AMD: roctracer), allow users to profile, and record again";

fn no_device(seen: &str) -> String {
    match seen {
        "" => "a device is listed, but no work on it was recorded".to_owned(),
        call if call.contains("Launch") => {
            format!("the host launched kernels ({call}), but no device work was recorded")
        }
        device => format!("{device} is listed, but no work on it was recorded"),
    }
}

/// Profilers that drop events rarely report how many.
fn dropped(issue: &Issue, detail: &str) -> String {
    let by = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    match issue.count {
        Some(count) if count > 1 => format!("the profiler dropped {}{by}", plural(count, "event", "events")),
        _ => format!("the profiler dropped events{by}; the number is unknown"),
    }
}

fn repair(issue: &Issue, code: &str) -> String {
    let what = match code {
        "bad-escape" => "an invalid escape after a backslash",
        "control-byte" => "a control byte inside text",
        "invalid-utf8" => "bytes that are not UTF-8",
        "bare-quote" => "a quotation mark that was not escaped",
        "bare-word" => "a word instead of a value, such as N/A",
        "trailing-comma" => "a trailing comma",
        "missing-comma" => "a missing comma",
        "missing-value" => "a key without a value",
        "empty-event" => "an empty event",
        "unreadable-event" => "an unreadable event",
        "unreadable-header" => "an unreadable part outside the events",
        "missing-ts" => "an event without a time",
        "missing-dur" => "an event without a duration",
        "trailing-junk" => "data after the end of the document",
        other => other,
    };
    format!("repaired {}: {what}", times(issue.count.unwrap_or(1)))
}

/// What the recorder itself says, with what it means where that is known.
fn complaint(issue: &Issue, text: &str) -> Worded {
    let repeated = issue.count.filter(|&count| count > 1);
    let repeated = repeated.map_or(String::new(), |count| format!(", {}", times(count)));
    match complaints::known(text) {
        Some(known) => Worded {
            message: format!("{}; the profiler reports: {text}{repeated}", known.meaning),
            fix: Some(known.fix.to_owned()),
        },
        None if text.is_empty() => plain(format!(
            "the profiler reported {}",
            plural(issue.count.unwrap_or(1), "more problem", "more problems")
        )),
        None => plain(format!("the profiler reports: {text}{repeated}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issue(trouble: Trouble, detail: &str, count: Option<u64>) -> Issue {
        Issue { host: "trainer".into(), trouble, detail: detail.into(), count, offset: None, span: None }
    }

    #[test]
    fn a_missing_cupti_gets_its_cure() {
        let text = "Failed to load libcupti (is it installed and accessible?)";
        let worded = words(&issue(Trouble::CollectionError, text, Some(1)));
        assert!(worded.message.contains("was not found") && worded.message.contains(text));
        assert!(worded.fix.is_some_and(|fix| fix.contains("LD_LIBRARY_PATH")));
        let worded = words(&issue(Trouble::CollectionError, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", Some(1)));
        assert!(worded.fix.is_some_and(|fix| fix.contains("NVreg_RestrictProfilingToAdminUsers")));
    }

    #[test]
    fn an_unknown_number_of_dropped_events_is_not_one() {
        let worded = words(&issue(Trouble::DroppedEvents, "trace_buffer_overflowed", Some(1)));
        assert!(worded.message.contains("the number is unknown"), "{}", worded.message);
    }

    #[test]
    fn remarks_alone_leave_a_recording_healthy() {
        let said = |issues: &[Issue]| table(issues, &[0]).headline.unwrap();
        assert!(said(&[]).starts_with("healthy: no problems found"));
        let remark = issue(Trouble::ClockUnknown, "", None);
        assert!(
            said(std::slice::from_ref(&remark))
                .starts_with("healthy: this recording of 0 events is reliable (1 note)")
        );
        let worst = said(&[remark, issue(Trouble::Damaged, "a tag", Some(1))]);
        assert_eq!(worst, "not healthy (1 error, 1 note): the file is damaged: a tag");
    }
}
