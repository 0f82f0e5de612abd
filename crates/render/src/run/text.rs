//! The summary of a run as text.

use std::io::{self, Write};

use stepscope_diagnose::hints::Hint;
use stepscope_results::run::{NotRecorded, RunPage, RunSteps, StepSource, Verdict};

use super::usage_lines;
use crate::format::{decimal, duration_ms, percent, plural, printable, short};
use crate::style::Style;

/// Maximum line length.
const WIDEST: usize = 100;
/// Width of the labels.
const LABEL: usize = 12;
/// The program's own figure is shown if it differs by more than this.
const DIFFERS: f64 = 0.05;
/// Number of levels shown for a run that is never steady.
const LEVELS: usize = 6;

/// Writes the summary.
pub fn write_text(page: &RunPage, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let width = style.width.map_or(WIDEST, |width| width.clamp(40, WIDEST));
    writeln!(out)?;
    let mut line = |label: &str, text: &str| -> io::Result<()> {
        for (place, part) in wrapped(&printable(text), width.saturating_sub(LABEL)).into_iter().enumerate() {
            let label = format!("{:<LABEL$}", if place == 0 { label } else { "" });
            writeln!(out, "{}{part}", style.dim(&label))?;
        }
        Ok(())
    };
    let unasked = page.verdict.as_ref().filter(|verdict| verdict.unasked);
    for (label, text) in unasked.into_iter().flat_map(first_answer) {
        line(label, &text)?;
    }
    line("run", &command(page))?;
    line("ended", &ended(page))?;
    for (label, text) in steps(page) {
        line(label, &text)?;
    }
    let steady = page.steps.as_ref().is_some_and(|steps| steps.steady);
    let stepping = page.steady_usage.and_then(|usage| usage.cpu).map(|cpu| (cpu, steady));
    for (label, text) in usage_lines(&page.usage, stepping) {
        line(&label, &text)?;
    }
    for (warning, proof, count) in &page.warnings {
        line("finding", &format!("{}: {}.", warning.id, warning.meaning))?;
        let times = if *count > 1 { format!(", {count} times") } else { String::new() };
        line("", &format!("its output says{times}: {}", first_line(proof)))?;
        line("", &format!("Fix: {}", warning.fix))?;
    }
    if let Some(verdict) = &page.verdict {
        if !verdict.unasked {
            line("verdict", &verdict.sentence)?;
            line("", &format!("from the profile; full report: stepscope report {}", verdict.path))?;
        }
    } else {
        for (place, hint) in page.hints.iter().enumerate() {
            line(if place == 0 { "hint" } else { "" }, &sentence(hint))?;
        }
        if !page.hints.is_empty() {
            line(
                "",
                "This is a hint from utilisation, not proof. Record a profile to be sure (see `stepscope run --help`).",
            )?;
        }
    }
    if let Some(why) = &page.no_profile {
        line("no profile", why)?;
    }
    match (&page.not_recorded, &page.verdict) {
        (Some(why), None) => line("not recorded", &not_recorded(why))?,
        (Some(NotRecorded::Closed(option)), Some(verdict)) if verdict.unasked => line(
            "no lines",
            &format!(
                "Python's option {option} keeps stepscope out; PyTorch's own recorder knows no lines of code"
            ),
        )?,
        _ => {}
    }
    if let Some(saved) = &page.saved {
        line("saved", &format!("{saved} (use it with stepscope compare)"))?;
    }
    Ok(())
}

/// What a user wants to know first: why the step is slow, in which line, and what to do.
fn first_answer(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let place = verdict.line.as_ref().map_or(String::new(), |line| format!("{line}: "));
    let mut lines = vec![("verdict", format!("{place}{}", verdict.sentence))];
    lines.extend(verdict.advice.as_ref().map(|advice| ("do", advice.clone())));
    lines.extend(verdict.memory.as_ref().map(|memory| ("allocated", memory.clone())));
    lines.push(("recording", format!("{} (stepscope {})", verdict.path, commands(verdict))));
    lines
}

/// What to do with the recording.
fn commands(verdict: &Verdict) -> &'static str {
    match verdict.memory {
        Some(_) => "report, memory, serve or compare",
        None => "report, serve or compare",
    }
}

fn not_recorded(why: &NotRecorded) -> String {
    match why {
        NotRecorded::Closed(option) => {
            format!(
                "Python's option {option} keeps stepscope out of the program; run it without this option for a verdict"
            )
        }
        NotRecorded::NoSteps => {
            "no steps were seen: no batches, optimizer updates or compiled functions".to_owned()
        }
        NotRecorded::TooShort => "the program ended before three steps were complete".to_owned(),
        NotRecorded::Failed(problem) => format!("the profiler failed: {problem}"),
    }
}

/// The start of what a program printed.
fn first_line(text: &str) -> String {
    const LONGEST: usize = 160;
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// The command line, roughly as it could be typed again: arguments with spaces are quoted.
fn command(page: &RunPage) -> String {
    let quoted = |part: &String| {
        if part.is_empty() || part.contains(char::is_whitespace) { format!("'{part}'") } else { part.clone() }
    };
    page.command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn ended(page: &RunPage) -> String {
    let how = match page.signal {
        Some(signal) => format!("by signal {signal} (exit code {})", page.exit_code),
        None => format!("with exit code {}", page.exit_code),
    };
    format!("{how} after {}", duration_ms(page.wall_s * 1e3))
}

fn steps(page: &RunPage) -> Vec<(&'static str, String)> {
    let Some(steps) = &page.steps else {
        if page.held_back {
            let why = "its output counts up, but all of it arrived at the end, so steps cannot be timed: Python buffers \
                       output to a pipe (set PYTHONUNBUFFERED=1, or print with flush=True)";
            return vec![("steps", why.to_owned())];
        }
        let why = "no steps found: nothing in the output or event files counts up \
                   (`step 12`, a progress bar, a scalar)";
        return vec![("steps", why.to_owned())];
    };
    let mut lines = vec![("steps", counted(steps))];
    if steps.examples {
        let each = "the program counts examples; use --batch-size to get step times";
        lines.push(("", each.to_owned()));
    } else {
        lines.push(("step time", times(steps)));
    }
    lines.extend(own(steps).map(|text| ("", text)));
    lines.extend(throughput(page).map(|text| ("throughput", text)));
    lines
}

fn counted(steps: &RunSteps) -> String {
    let what = if steps.examples { ("example", "examples") } else { ("step", "steps") };
    let from = match &steps.source {
        StepSource::Lines => "timed from its output".to_owned(),
        StepSource::Events(tag) => format!("timed from the scalar {tag} in its event files"),
        StepSource::Reported => "as reported by the program, not timed".to_owned(),
        StepSource::Inside => "timed inside the program".to_owned(),
    };
    let mut text = format!("{}, {from}", plural(steps.count, what.0, what.1));
    if steps.source != StepSource::Reported {
        text += &format!("; first step seen after {}", duration_ms(steps.first_s * 1e3));
    }
    if steps.steady && steps.warm_up > 0 {
        text += &format!(
            "; {} excluded",
            plural(steps.warm_up, &format!("warm-up {}", what.0), &format!("warm-up {}", what.1))
        );
    }
    if steps.profiled > 0 {
        let more = plural(steps.profiled, &format!("more {}", what.0), &format!("more {}", what.1));
        text += &format!("; {more} excluded, slowed down by the profiler");
    }
    if !steps.steady {
        text += &unsteady(steps);
    }
    text
}

fn unsteady(steps: &RunSteps) -> String {
    if steps.levels.len() < 2 {
        return "; too few to find a steady state".to_owned();
    }
    let shown = steps.levels.iter().take(LEVELS);
    let levels: Vec<String> =
        shown.map(|(count, ms)| format!("{} × {}", decimal(*count as f64, 0), duration_ms(*ms))).collect();
    let more = if steps.levels.len() > LEVELS { ", …" } else { "" };
    format!("; no steady state: {}{more}", levels.join(", then "))
}

fn times(steps: &RunSteps) -> String {
    if steps.source == StepSource::Reported {
        // Percentiles of running means would be figures of nothing.
        let mean = duration_ms(steps.mean_ms);
        return format!("{mean} in the mean, as the program prints it; its own mean may include the warm-up");
    }
    let mut text = format!("median {}, mean {}", duration_ms(steps.median_ms), duration_ms(steps.mean_ms));
    if steps.bursty {
        text += " (single steps cannot be timed: the output is buffered; set PYTHONUNBUFFERED=1)";
    } else {
        text += &format!(", p90 {}, p99 {}", duration_ms(steps.p90_ms), duration_ms(steps.p99_ms));
    }
    text
}

/// The step time that the program reports, if it differs.
fn own(steps: &RunSteps) -> Option<String> {
    let own = steps.own_ms.filter(|_| steps.source != StepSource::Reported && !steps.examples)?;
    let differs =
        (own / steps.mean_ms - 1.0).abs() > DIFFERS && (own / steps.median_ms - 1.0).abs() > DIFFERS;
    differs.then(|| {
        format!(
            "the program itself reports {}, its own mean, which may include the warm-up",
            duration_ms(own)
        )
    })
}

fn throughput(page: &RunPage) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(page.steps_per_s().map(|rate| format!("{} steps/s", short(rate))));
    parts.extend(page.examples_per_s().map(|rate| {
        let batch = page.batch_size.map_or(String::new(), |batch| format!(" (batches of {batch})"));
        format!("{} examples/s{batch}", short(rate))
    }));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A hint in words that claim no more than is known.
fn sentence(hint: &Hint) -> String {
    match hint {
        Hint::CpuQuota(share) => format!(
            "The container reached its CPU limit for {} of the time: raise the limit, or use \
             fewer threads.",
            percent(*share)
        ),
        Hint::GpuWaitsForOneCore { idle } => format!(
            "The GPU was idle for {} of the time while about one core was busy: input, Python or launches on that \
             core may be the bottleneck.",
            percent(*idle)
        ),
        Hint::GpuWaits { idle } => format!(
            "The GPU was idle for {} of the time: it may be waiting for input, for the host or for other machines.",
            percent(*idle)
        ),
        Hint::GpuBusy(busy) => format!(
            "The GPU was busy for {} of the time: its kernels are probably the bottleneck.",
            percent(*busy)
        ),
        Hint::GpuHeld(share) => {
            format!(
                "The GPU's clocks were throttled in {} of the samples, by heat or power.",
                percent(*share)
            )
        }
        Hint::DiskWait(share) => format!(
            "Cores waited for disks for {} of their time: disk access may be the bottleneck.",
            percent(*share)
        ),
        Hint::OneCore { cores } => format!(
            "About one core of {} was busy: a single thread (often Python, or input that is not parallel) may be the \
             bottleneck.",
            short(*cores)
        ),
        Hint::AllCores { cores } => format!(
            "Nearly all of {} were busy: the processors are probably the bottleneck.",
            if *cores == 1.0 { "the one core".to_owned() } else { format!("the {} cores", short(*cores)) }
        ),
        Hint::Waits { cpu } => format!(
            "Only {} cores were busy: the run mostly waits for something that utilisation does not show.",
            short(*cpu)
        ),
        Hint::MemoryTight(share) => {
            format!("{} of the available memory was in use: little is left.", percent(*share))
        }
    }
}

/// Wraps the text at spaces into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use stepscope_results::usage::{Spread, Usage};

    use super::*;

    fn page() -> RunPage {
        RunPage {
            command: vec!["python".to_owned(), "train.py".to_owned()],
            wall_s: 21.3,
            batch_size: Some(32),
            steps: Some(RunSteps {
                source: StepSource::Lines,
                examples: false,
                count: 240,
                warm_up: 12,
                profiled: 0,
                steady: true,
                levels: vec![(12, 80.0), (228, 35.0)],
                first_s: 6.2,
                bursty: false,
                mean_ms: 36.0,
                median_ms: 35.2,
                p90_ms: 41.0,
                p99_ms: 60.0,
                deviation_ms: 4.0,
                own_ms: Some(50.0),
                own_examples_per_s: None,
                observed: Vec::new(),
            }),
            usage: Usage {
                cores: Some(8),
                cpu_cores: Some(Spread { mean: 1.1, max: 2.0 }),
                cpu_seconds: Some(24.1),
                rss_peak_bytes: Some(1_230_000_000),
                memory_total_bytes: Some(25_000_000_000),
                processes: 1,
                ..Usage::default()
            },
            hints: vec![Hint::OneCore { cores: 8.0 }],
            ..RunPage::default()
        }
    }

    fn text(page: &RunPage) -> String {
        let mut out = Vec::new();
        write_text(page, Style::PLAIN, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_fits_one_page() {
        insta::assert_snapshot!(text(&page()));
    }

    #[test]
    fn a_verdict_takes_the_place_of_hints() {
        let sentence = "The step waits for input.".to_owned();
        let verdict = Verdict { sentence, path: "logs".to_owned(), ..Verdict::default() };
        let told = text(&RunPage { verdict: Some(verdict), ..page() });
        assert!(told.contains("The step waits for input.") && !told.contains("hint"), "{told}");
    }

    #[test]
    fn a_mean_of_the_program_is_not_passed_off_as_measured_steps() {
        let mut page = page();
        page.steps.as_mut().unwrap().source = StepSource::Reported;
        let told = text(&page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("step time 36.0 ms in the mean, as the program prints it"), "{told}");
        assert!(!told.contains("p90"), "{told}");
    }

    #[test]
    fn a_recording_that_nobody_asked_for_comes_first_with_its_line() {
        let verdict = Verdict {
            sentence: "The step waits for input.".to_owned(),
            path: "logs".to_owned(),
            line: Some("train.py:41 make_batch".to_owned()),
            advice: Some("Use workers.".to_owned()),
            unasked: true,
            ..Verdict::default()
        };
        let told = text(&RunPage { verdict: Some(verdict), ..page() });
        let lines: Vec<&str> = told.trim_start().lines().collect();
        assert!(lines[0].starts_with("verdict") && lines[0].contains("train.py:41 make_batch"), "{told}");
        assert!(lines[1].starts_with("do") && lines[2].starts_with("recording"), "{told}");
    }

    #[test]
    fn steps_that_the_profile_slowed_are_named() {
        let mut page = page();
        page.steps.as_mut().unwrap().profiled = 9;
        let told = text(&page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("9 more steps excluded, slowed down by the profiler"), "{told}");
    }

    #[test]
    fn what_has_no_steady_state_says_so() {
        let mut page = page();
        let steps = page.steps.as_mut().unwrap();
        (steps.steady, steps.warm_up) = (false, 0);
        let told = text(&page).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("no steady state: 12 × 80.0 ms, then 228 × 35.0 ms"), "{told}");
        page.steps = None;
        assert!(text(&page).contains("no steps found"));
    }
}
