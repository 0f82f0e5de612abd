//! Results of analyses: the tables of views, host by host, and what only SQL lists.

use rayon::prelude::*;
use stepscope_analyze::devices::collectives::RankWaiting;
use stepscope_diagnose::{Finding, Words};
use stepscope_results::Cell as Shown;
use stepscope_results::views::View;
use stepscope_session::HostProfile;
use stepscope_session::report::report;

use crate::cell::Cell;
use crate::rows::{Rows, Sheet};
use crate::schema::{Table, table};
use crate::world::World;

/// The rows of a view of each host.
pub(crate) fn per_host(world: &World, view: &'static View) -> Box<dyn Rows> {
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
    let rows: Vec<Vec<Vec<Cell<'static>>>> = world.profile().hosts.par_iter().map(of_host).collect();
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
pub(crate) fn all() -> [Table; 2] {
    [COLLECTIVE, FINDING]
}

table! { COLLECTIVE: "collective", "Collectives of each rank per step, compared over all ranks that are open: time until the last rank arrived, and time after that. Hosts' clocks are aligned at the ends of common collectives. Needs two ranks.", collectives => rank,
    rank: Text "host and device" => rank.name;
    wait_ms: Real "waiting per step, ms" => rank.waiting_ms;
    transfer_ms: Real "transfer per step, ms" => rank.transfer_ms;
    last: Real "share of collectives at which it arrived last" => rank.last;
}

fn collectives(world: &World) -> impl Iterator<Item = RankWaiting> {
    world.ranks().waiting().map_or_else(Vec::new, |waiting| waiting.ranks).into_iter()
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

fn findings(world: &World) -> impl Iterator<Item = (i64, Finding, Words)> {
    let findings = report(world.profile(), Vec::new()).map_or_else(|_| Vec::new(), |report| report.findings);
    (1..).zip(findings).map(|(rank, finding)| {
        let words = finding.words();
        (rank, finding, words)
    })
}
