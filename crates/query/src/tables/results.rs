//! Results of analyses: the tables of views, host by host, and what only SQL lists.

use rayon::prelude::*;
use stepscope_analyze::devices::collectives::{RankRun, RankWaiting};
use stepscope_diagnose::{Finding, Words};
use stepscope_results::Cell as Shown;
use stepscope_results::views::View;
use stepscope_results::views::ranks::{Job, Line};
use stepscope_session::HostProfile;
use stepscope_session::report::report;

use crate::cell::Cell;
use crate::recording::Recording;
use crate::rows::{Rows, Sheet};
use crate::schema::{Table, table};

/// The rows of a view of each host.
pub(crate) fn per_host(recording: &Recording, view: &'static View) -> Box<dyn Rows> {
    let of_host = |loaded: &HostProfile| {
        let shown = (view.table)(loaded);
        let declared = (view.columns)();
        let declared = declared.iter().filter(|column| crate::schema::is_in_sql(column));
        let places: Vec<Option<usize>> =
            declared.map(|column| shown.columns().iter().position(|known| known.key == column.key)).collect();
        let row = |row: &Vec<Shown>| {
            let cells = places.iter().map(|place| place.and_then(|place| row.get(place)));
            let cells = cells.map(|cell| cell.map_or(Cell::Null, taken));
            cells.chain([Cell::from(loaded.host.clone())]).collect()
        };
        shown.rows().iter().map(row).collect::<Vec<Vec<Cell<'static>>>>()
    };
    let rows: Vec<Vec<Vec<Cell<'static>>>> = recording.profile().hosts.par_iter().map(of_host).collect();
    Box::new(Sheet(rows.into_iter().flatten().collect()))
}

fn taken(cell: &Shown) -> Cell<'static> {
    match cell {
        Shown::Null => Cell::Null,
        Shown::Int(value) => i64::try_from(*value).map_or_else(|_| Cell::from(value.to_string()), Cell::Int),
        Shown::Float(value) => Cell::from(*value),
        Shown::Bool(value) => Cell::from(*value),
        Shown::Text(text) => Cell::from(text.clone()),
        Shown::Map(_) => serde_json::to_string(cell).map_or(Cell::Null, Cell::from),
    }
}

/// The tables that only SQL has.
pub(crate) fn all() -> [Table; 4] {
    [RANK, COLLECTIVE, COLLECTIVE_RUN, FINDING]
}

table! { RANK: "rank", "The ranks of a job, and the processes that serve them, compared over all hosts that are open: own work, waiting caused and suffered, and what each does more than the others.", ranks => line,
    rank: Text "the process, replica or device" => line.rank.clone();
    host: Text "its host" => line.host.clone();
    part: Text "its part in the job, e.g. ps/0" => line.part.clone();
    own_ms: Real "own work per step, ms" => line.own_ms;
    waiting_ms: Real "waiting for others per step, ms" => line.waiting.as_ref().map(|rank| rank.waiting_ms);
    caused_ms: Real "waiting of all others for it, per step, ms" => line.waiting.as_ref().map(|rank| rank.caused_ms);
    leads: Real "share of steps in which the others wait longest for it" => line.waiting.as_ref().map(|rank| rank.leads);
    late_ms: Real "arrival after the last but one, per step, ms" => line.waiting.as_ref().map(|rank| rank.late_ms);
    differs: Text "what it does more than the others" => line.differs.as_ref().map(|(what, _)| what.clone());
    differs_ms: Real "how much more, per step, ms" => line.differs.as_ref().map(|(_, ms)| *ms);
}

fn ranks(recording: &Recording) -> impl Iterator<Item = Line> {
    Job::of(recording.profile()).lines().into_iter()
}

table! { COLLECTIVE: "collective", "Collectives of each rank per step, compared over all ranks that are open: time until the last rank arrived, and time after that. Hosts' clocks are aligned at the ends of common collectives. Needs two ranks.", collectives => rank,
    rank: Text "host and device" => rank.name;
    wait_ms: Real "waiting per step, ms" => rank.waiting_ms;
    transfer_ms: Real "transfer per step, ms" => rank.transfer_ms;
    setup_ms: Real "from its arrival until the exchange itself began, per step, ms; part of the two before" => rank.setup_ms;
    caused_ms: Real "waiting of all others for it, per step, ms" => rank.caused_ms;
    leads: Real "share of steps in which the others wait longest for it" => rank.leads;
    late_ms: Real "arrival after the last but one, per step, ms" => rank.late_ms;
    last: Real "share of collectives at which it arrived last" => rank.last;
}

table! { COLLECTIVE_RUN: "collective_run", "Every collective of each compared rank: how long it waited for the last rank, and which that is.", collective_runs => (event, run),
    event_id: Int "its event" => event;
    rank: Text "the rank" => run.rank.clone();
    host: Text "its host" => run.host.clone();
    step: Int "the step number" => run.step;
    wait_ns: Int "waiting for the last rank, within the event, ns" => run.waited.ps() / 1_000;
    last: Int "1 if it arrived last" => i64::from(run.last);
}

fn collective_runs(recording: &Recording) -> impl Iterator<Item = (i64, RankRun)> {
    let hosts: Vec<&str> = recording.profile().hosts.iter().map(|loaded| loaded.host.as_str()).collect();
    let with_event = |run: RankRun| {
        let number = hosts.iter().position(|host| *host == run.host)?;
        Some((recording.id_of(number, run.event), run))
    };
    recording.ranks().runs().into_iter().filter_map(with_event).collect::<Vec<_>>().into_iter()
}

fn collectives(recording: &Recording) -> impl Iterator<Item = RankWaiting> {
    recording.ranks().waiting().map_or_else(Vec::new, |waiting| waiting.ranks).into_iter()
}

table! { FINDING: "finding", "What stepscope reports, the verdict first.", findings => (rank, finding, words),
    rank: Int "1 is the verdict" => rank;
    id: Text "the finding; `stepscope explain ID` describes it" => finding.id();
    about: Text "trust, goal, habits, cause or run; trust marks doubts about the recording" => finding.rule.about.key();
    severity: Text "critical, warning or info" => finding.severity.key();
    subject: Text "what it is about" => finding.subject.clone();
    fraction: Real "share of the step that it owns" => finding.fraction;
    gain_ms_per_step: Real "what a fix saves at most, ms per step" => finding.gain_ms;
    confidence: Real "how sure it is, 0 to 1" => finding.confidence;
    summary: Text "the finding in a sentence" => words.summary;
    evidence: Text "what was measured, one fact per line" => words.evidence.join("\n");
    advice: Text "what to do, one step per line" => words.advice.join("\n");
}

fn findings(recording: &Recording) -> impl Iterator<Item = (i64, Finding, Words)> {
    let findings =
        report(recording.profile(), Vec::new()).map_or_else(|_| Vec::new(), |report| report.findings);
    (1..).zip(findings).map(|(rank, finding)| {
        let words = finding.words();
        (rank, finding, words)
    })
}
