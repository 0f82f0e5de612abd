//! What is wrong with a recording, in words: the trouble, its cause where it is known, and its cure.

use stepscope_analyze::health::{Issue, Severity, Trouble};
use stepscope_analyze::info::Source;
use stepscope_diagnose::complaints;

use crate::format::{duration_ms, plural, printable};
use crate::style::Style;
use crate::table::{Cell, Column, Format, Table};

/// One trouble, worded. The report's `health` rows are these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worded {
    /// What it is and, where it is known, why.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// The view `health`: one row a trouble, worst first.
pub fn table(issues: &[Issue], sources: &[Source<'_>], style: Style) -> Table {
    let columns = [
        ("id", Format::Text),
        ("severity", Format::Text),
        ("message", Format::Name),
        ("count", Format::Count),
        ("offset", Format::Id),
        ("fix", Format::Name),
        ("host", Format::Text),
    ];
    let mut table = Table::new("health", columns.map(|(key, format)| Column::new(key, key, format)).to_vec());
    let mut worst_first: Vec<&Issue> = issues.iter().collect();
    worst_first.sort_by_key(|issue| std::cmp::Reverse(issue.trouble.severity()));
    table.headline = Some(headline(&worst_first, sources));
    for issue in worst_first {
        let worded = words(issue);
        let prose = prose(issue, &worded, sources.len() > 1, style);
        let cells = [
            Cell::from(issue.trouble.id()),
            severity(issue.trouble.severity()).into(),
            worded.message.into(),
            issue.count.into(),
            issue.offset.into(),
            worded.fix.into(),
            issue.host.as_str().into(),
        ];
        table.push_prose(cells, prose);
    }
    table
}

/// A severity's public name.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

fn headline(issues: &[&Issue], sources: &[Source<'_>]) -> String {
    let of = |severity: Severity| {
        issues.iter().filter(|issue| issue.trouble.severity() == severity).count() as u64
    };
    let (errors, warnings, remarks) = (of(Severity::Error), of(Severity::Warning), of(Severity::Info));
    let events = plural(sources.iter().map(|source| source.trace.events()).sum(), "event", "events");
    let counted = [
        (errors, plural(errors, "error", "errors")),
        (warnings, plural(warnings, "warning", "warnings")),
        (remarks, plural(remarks, "remark", "remarks")),
    ];
    let counted: Vec<String> =
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    match issues.first() {
        None => format!("healthy: nothing is wrong with this recording of {events}"),
        Some(_) if errors + warnings == 0 => {
            format!("healthy: this recording of {events} can be trusted ({})", counted.join(", "))
        }
        Some(worst) => format!("not healthy ({}): {}", counted.join(", "), words(worst).message),
    }
}

fn prose(issue: &Issue, worded: &Worded, with_host: bool, style: Style) -> String {
    let label = match issue.trouble.severity() {
        Severity::Error => style.red("error  "),
        Severity::Warning => style.yellow("warning"),
        Severity::Info => style.cyan("info   "),
    };
    let host = if with_host { format!("{}: ", issue.host) } else { String::new() };
    let place = issue.offset.map_or(String::new(), |offset| format!(" (from byte {offset})"));
    let fix = worded.fix.as_ref().map_or(String::new(), |fix| format!("\n         fix: {fix}"));
    format!("{label}  {host}{}{place}{fix}", worded.message)
}

/// The words for one trouble.
pub fn words(issue: &Issue) -> Worded {
    let detail = printable(issue.detail.trim());
    let events = |verb: &str| {
        let count = issue.count.unwrap_or(1);
        let ending = if count == 1 && !verb.is_empty() { "s" } else { "" };
        format!("{} {verb}{ending}", plural(count, "event", "events"))
    };
    let have = |one: &str, many: &str| {
        let count = issue.count.unwrap_or(1);
        format!("{} {}", plural(count, "event", "events"), if count == 1 { one } else { many })
    };
    let on = if detail.is_empty() { String::new() } else { format!(" on {detail}") };
    let (message, fix) = match issue.trouble {
        Trouble::Damaged => (
            format!("the file is damaged: {detail}"),
            "copy the file again, or record again; what is shown is partial",
        ),
        Trouble::CollectionError | Trouble::CollectionWarning => return complaint(issue, &detail),
        Trouble::NoEvents => (
            "there is not a single event in this recording".to_owned(),
            "profile for longer, while steps run; for remote captures check address and port",
        ),
        Trouble::NoDeviceEvents => (no_device(&detail), NO_DEVICE_FIX),
        Trouble::DroppedEvents => (dropped(issue, &detail), "profile fewer steps, or with less detail"),
        Trouble::EventCap => (
            format!(
                "the recording ends at exactly {}, a recorder's limit: the rest is missing",
                events("").trim()
            ),
            "profile fewer steps, or raise the recorder's limit",
        ),
        Trouble::OutsideCapture => (
            format!("{} outside the capture's own window", events("lie")),
            "use the steps in the middle; the edges are incomplete",
        ),
        Trouble::OverLong => {
            (format!("{} longer than the whole capture", events("last")), "do not trust their durations")
        }
        Trouble::TimeOutOfRange => (
            format!("{}{on} times beyond 106 days, moved to the edge", have("has", "have")),
            "record again; the clock went wrong",
        ),
        Trouble::NegativeDuration => (
            format!("{}{on} an end before the start, read as instants", have("has", "have")),
            "do not trust times of that track to the microsecond",
        ),
        Trouble::Unpaired => (
            format!("{} without their other end", events("stand")),
            "expected at the edges of a capture; otherwise events were dropped",
        ),
        Trouble::DanglingReference => (
            format!("{} to what the file does not define ({detail})", events("refer")),
            "record again; part of the file is missing",
        ),
        Trouble::ShortCapture => {
            let span = issue.span.map_or(String::new(), |span| format!(": {}", duration_ms(span.ms())));
            (format!("the capture is very short{span}"), "profile at least ten steps after warm-up")
        }
        Trouble::OtherTime => (
            format!("{detail} was sampled more than a day apart from the timeline, and is left out"),
            "open it by itself, or put the log of the same run beside the timeline",
        ),
        Trouble::UnnamedColumns => (
            format!(
                "{} neither a name nor a unit, so nobody can say what the numbers are",
                plural(issue.count.unwrap_or(1), "column has", "columns have")
            ),
            "record with a header: leave `noheader` out of `--format`",
        ),
        Trouble::FewCounters => (
            "kernels were profiled without the counters that say what limits them".to_owned(),
            "record with `ncu --set full`, or at least with the sections SpeedOfLight, Occupancy and \
             MemoryWorkloadAnalysis",
        ),
        Trouble::IdleDevices => {
            let count = issue.count.unwrap_or(1);
            let devices = plural(count, "device has", "devices have");
            (
                format!("{devices} no event while others have"),
                "check that the job was meant to leave them idle",
            )
        }
        Trouble::Repaired => return Worded { message: repair(issue, &detail), fix: None },
        Trouble::UnknownContent => {
            return plain(format!("{} of a kind that this version does not know ({detail})", parts(issue)));
        }
        Trouble::Overlapping => {
            return plain(format!(
                "{} with others of their thread or stream; kept in lanes of their own",
                events("overlap")
            ));
        }
        Trouble::ZeroLength => {
            return plain(format!("{} no length", have("has", "have")));
        }
        Trouble::ClockUnknown => {
            return plain("the file has relative times only: when it was recorded is not known".to_owned());
        }
    };
    Worded { message, fix: Some(fix.to_owned()) }
}

fn plain(message: String) -> Worded {
    Worded { message, fix: None }
}

fn parts(issue: &Issue) -> String {
    plural(issue.count.unwrap_or(1), "part", "parts")
}

const NO_DEVICE_FIX: &str = "make the device's tracing library visible (CUPTI on the LD_LIBRARY_PATH for NVIDIA, \
                             roctracer for AMD), allow profiling for users, and record again";

fn no_device(seen: &str) -> String {
    match seen {
        "" => "a device is listed, but nothing that ran on it was recorded".to_owned(),
        call if call.contains("Launch") => {
            format!("the host launched kernels ({call}), but nothing that ran on a device was recorded")
        }
        device => format!("{device} is listed, but nothing that ran on it was recorded"),
    }
}

/// A recorder that drops events seldom says how many.
fn dropped(issue: &Issue, detail: &str) -> String {
    let by = if detail.is_empty() { String::new() } else { format!(" ({detail})") };
    match issue.count {
        Some(count) if count > 1 => format!("the recorder dropped {}{by}", plural(count, "event", "events")),
        _ => format!("the recorder dropped events{by}; how many is not known"),
    }
}

fn repair(issue: &Issue, code: &str) -> String {
    let what = match code {
        "bad-escape" => "a backslash before something that is not an escape",
        "control-byte" => "a control byte inside text",
        "invalid-utf8" => "bytes that are not UTF-8",
        "bare-quote" => "a quotation mark that was not escaped",
        "bare-word" => "a word where a value should be, such as N/A",
        "trailing-comma" => "a comma with nothing behind it",
        "missing-comma" => "a comma missing",
        "missing-value" => "a key without a value",
        "empty-event" => "an event without anything in it",
        "unreadable-event" => "an event that could not be read",
        "unreadable-header" => "a part beside the events that could not be read",
        "missing-ts" => "an event without a time",
        "missing-dur" => "an event without a duration",
        "trailing-junk" => "something behind the end of the document",
        other => other,
    };
    let times = issue.count.unwrap_or(1);
    if times == 1 {
        format!("mended once: {what}")
    } else {
        format!("mended {}: {what}", plural(times, "time", "times"))
    }
}

/// What the recorder itself says, with what it means where that is known.
fn complaint(issue: &Issue, text: &str) -> Worded {
    let times = issue
        .count
        .filter(|&count| count > 1)
        .map_or(String::new(), |n| format!(", {}", plural(n, "time", "times")));
    match complaints::known(text) {
        Some(known) => Worded {
            message: format!("{}; the recorder says: {text}{times}", known.meaning),
            fix: Some(known.fix.to_owned()),
        },
        None if text.is_empty() => plain(format!(
            "the recorder made {} more",
            plural(issue.count.unwrap_or(1), "complaint", "complaints")
        )),
        None => plain(format!("the recorder says: {text}{times}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::TraceBuilder;

    fn issue(trouble: Trouble, detail: &str, count: Option<u64>) -> Issue {
        Issue { host: "trainer".into(), trouble, detail: detail.into(), count, offset: None, span: None }
    }

    #[test]
    fn a_missing_cupti_gets_its_cure() {
        let text = "Failed to load libcupti (is it installed and accessible?)";
        let worded = words(&issue(Trouble::CollectionError, text, Some(1)));
        assert!(worded.message.contains("CUPTI, was not found") && worded.message.contains(text));
        assert!(worded.fix.is_some_and(|fix| fix.contains("LD_LIBRARY_PATH")));
        let worded = words(&issue(Trouble::CollectionError, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", Some(1)));
        assert!(worded.fix.is_some_and(|fix| fix.contains("NVreg_RestrictProfilingToAdminUsers")));
    }

    #[test]
    fn an_unknown_number_of_dropped_events_is_not_one() {
        let worded = words(&issue(Trouble::DroppedEvents, "trace_buffer_overflowed", Some(1)));
        assert!(worded.message.contains("how many is not known"), "{}", worded.message);
    }

    #[test]
    fn remarks_alone_leave_a_recording_healthy() {
        let trace = TraceBuilder::new().finish();
        let sources = [Source { path: "p", format: "xplane", bytes: 1, host: "trainer", trace: &trace }];
        let said = |issues: &[Issue]| table(issues, &sources, Style::PLAIN).headline.unwrap();
        assert!(said(&[]).starts_with("healthy: nothing is wrong"));
        let remark = issue(Trouble::ClockUnknown, "", None);
        assert!(
            said(std::slice::from_ref(&remark))
                .starts_with("healthy: this recording of 0 events can be trusted (1 remark)")
        );
        let worst = said(&[remark, issue(Trouble::Damaged, "a tag", Some(1))]);
        assert_eq!(worst, "not healthy (1 error, 1 remark): the file is damaged: a tag");
    }
}
