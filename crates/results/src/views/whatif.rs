//! `stepscope whatif`: how long a step would take if one thing in it were different.

use stepscope_analyze::Context;
use stepscope_analyze::replay::{Assumption, Change, Distrust, Grade, NoReplay, Prediction, Replay};
use stepscope_trace::Dur;

use super::{Group, Hosts, View, each_host};
use crate::format::{duration_ms, percent, plural};
use crate::table::{Field, Table, columns, described};
use crate::words::terms;

pub(super) const VIEW: View = View {
    name: "whatif",
    title: "What if",
    group: Group::Time,
    question: "How long would a step take after a change?",
    about: "Replay the recorded steps with something changed, and say how long a step would take",
    after_help: "Examples:\n  \
        stepscope whatif logs/                                 all changes that apply, best first\n  \
        stepscope whatif logs/ --change input=free             batches are there when the loop asks for them\n  \
        stepscope whatif logs/ --change workers=4              four workers load batches ahead\n  \
        stepscope whatif logs/ --change op:gemm=x2             kernels or ops with this name twice as fast\n  \
        stepscope whatif logs/ --change sync=off,launch=graph  both at once",
    record: &[
        "PyTorch: `ProfilerActivity.CUDA` and `ProfilerActivity.CPU` together, and `prof.step()` after each step",
        "Nsight Systems: `nsys profile --trace=cuda,nvtx,osrt`, with an NVTX range around each step",
        "TensorFlow and JAX on GPUs: CUPTI must be on the library path",
    ],
    events: None,
    recording: false,
    sql: Some(("whatif", "Steps replayed with one change each.")),
    columns: || described(columns()),
    members: "
        unknown?: string -- Why nothing can be predicted, in words. Absent if something can; otherwise `step_ms` is absent.
        step_ms?: number -- The step as it is: the mean of the counted ones.
        replayed?: integer -- Number of steps that were replayed.
        refused?: [refusal] -- Changes that were asked for and cannot be predicted.
        @refusal
        change: string -- The change.
        why: string -- Why it cannot be predicted.
    ",
    table: |hosts| table(hosts, &[]),
    groupings: &[],
};

/// How sure a prediction is.
const GRADES: &[&str] = &["firm", "likely"];

fn columns() -> Vec<Field<Prediction>> {
    columns! { row: Prediction;
        change.known: Name "change", "what is different" => change(row);
        expected_ms.known: Ms "step", "the step that is expected" => row.expected.ms();
        low_ms.known: Ms "at least", "the shortest step that is plausible" => row.low.ms();
        high_ms.known: Ms "at most", "the longest step that is plausible" => row.high.ms();
        gain_ms.known: Ms "wins", "how much shorter than now" => (row.step - row.expected).ms();
        gain_fraction.known: Percent "share", "that as a share of the step now" => (row.step - row.expected).fraction_of(row.step);
        grade.known.one_of(GRADES): Text "grade", "how sure it is" => grade(row.grade);
        binds.optional: Text "then bound by", "the category that determines the step then" => row.binds.map(|(category, _)| category.key());
        binds_fraction.hidden: Percent "share of that", "its share of the step then" => row.binds.map(|(_, share)| share);
        assumes.hidden: Text "assumes", "what it takes for granted" => assumptions(row);
    }
}

/// What one host says.
struct Answer {
    step: Dur,
    replayed: usize,
    rows: Vec<Prediction>,
    refused: Vec<(String, String)>,
}

/// The table for these changes, each with all that is changed at once; of all that apply, if there are none.
pub fn table(hosts: &dyn Hosts, asked: &[Vec<Change>]) -> Table {
    let answers = each_host(hosts, |context| answer(context, asked));
    let why = answers.iter().find_map(|answer| answer.as_ref().err().cloned());
    // All wait for the host with the longest step.
    let longest = answers.into_iter().filter_map(Result::ok).max_by_key(|answer| answer.step);
    let rows = longest.as_ref().map_or(&[][..], |answer| &answer.rows);
    let mut table = Table::of("whatif", &columns(), rows);
    table.top = Some(20);
    let Some(answer) = &longest else {
        let why = why
            .unwrap_or_else(|| no_replay(&NoReplay::Path(stepscope_analyze::time::critical::NoPath::Steps)));
        table.headline = Some(format!("Nothing can be predicted: {why}"));
        table.member("unknown", why);
        return table;
    };
    table.headline = Some(headline(answer));
    table.member("step_ms", answer.step.ms());
    table.member("replayed", answer.replayed);
    let refused =
        answer.refused.iter().map(|(change, why)| serde_json::json!({"change": change, "why": why}));
    table.member("refused", refused.collect::<Vec<_>>());
    notes(&mut table, answer);
    table
}

fn answer(context: &Context<'_>, asked: &[Vec<Change>]) -> Result<Answer, String> {
    let replay = Replay::of(context).map_err(|why| no_replay(&why))?;
    let (mut rows, mut refused) = (Vec::new(), Vec::new());
    if asked.is_empty() {
        rows = replay.outlook();
    }
    for changes in asked {
        match replay.predict(changes) {
            Ok(row) => rows.push(row),
            Err(why) => refused.push((together(changes), no_replay(&why))),
        }
    }
    Ok(Answer { step: replay.step(), replayed: replay.steps(), rows, refused })
}

fn headline(answer: &Answer) -> String {
    let step = duration_ms(answer.step.ms());
    let Some(best) = answer.rows.first() else {
        let why = answer
            .refused
            .first()
            .map_or("nothing that can be changed was recorded", |(_, why)| why.as_str());
        return format!("The step takes {step}; {why}");
    };
    let range = format!("{} to {}", duration_ms(best.low.ms()), duration_ms(best.high.ms()));
    format!("{}: {step} → {} ({range})", change(best), duration_ms(best.expected.ms()))
}

fn notes(table: &mut Table, answer: &Answer) {
    table.note(format!(
        "{} replayed. Firm: rests on what was recorded. Likely: rests on assumptions as well.",
        plural(answer.replayed as u64, "step was", "steps were")
    ));
    for (change, why) in &answer.refused {
        table.note(format!("{change} cannot be predicted: {why}."));
    }
    if answer.rows.len() <= 3 {
        for row in &answer.rows {
            if let Some(assumes) = assumptions(row) {
                table.note(format!("{} assumes that {assumes}.", change(row)));
            }
        }
    }
}

fn change(row: &Prediction) -> String {
    together(&row.changes)
}

fn together(changes: &[Change]) -> String {
    changes.iter().map(Change::to_string).collect::<Vec<_>>().join(",")
}

fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Firm => "firm",
        Grade::Likely => "likely",
    }
}

/// What a prediction takes for granted; `None` if nothing.
fn assumptions(row: &Prediction) -> Option<String> {
    let all: Vec<String> = row.assumes.iter().map(|&one| assumption(one)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn assumption(one: Assumption) -> String {
    match one {
        Assumption::HandOver => "taking a batch from a worker costs 1.5 ms".to_owned(),
        Assumption::Cores(workers) => {
            format!("{} free for the workers", plural(workers as u64, "core is", "cores are"))
        }
        Assumption::StaticShapes => {
            "shapes do not change and the host needs nothing between launches".to_owned()
        }
        Assumption::HalfPrecision => {
            "products are 2 to 3 times as fast in 16 bits, and the model bears it".to_owned()
        }
        Assumption::Beside => "collectives are at most a third slower beside other work".to_owned(),
        Assumption::ResultsNotNeeded => "the host does not need the results that it waits for".to_owned(),
        Assumption::Scaling => "kernels take at most proportionally longer".to_owned(),
        Assumption::Producer => {
            "the loop makes its batches itself (if not, the batches may come no faster)".to_owned()
        }
        Assumption::Compiled => {
            "a compiled function dispatches 5 to 20 times as fast as its ops do one by one".to_owned()
        }
        Assumption::SharedProcessor => {
            "the input no longer takes processor time from the rest of the step".to_owned()
        }
        Assumption::Parallel => "the ops that run beside it do not take over".to_owned(),
        Assumption::Inferred => {
            "waits between streams or threads are those that the times suggest".to_owned()
        }
    }
}

/// Why there is no prediction.
pub fn no_replay(why: &NoReplay) -> String {
    match why {
        NoReplay::Path(why) => terms::no_path(*why),
        NoReplay::Nothing(change) => format!("the recording has nothing that `{change}` would change"),
        NoReplay::Distrusted(Distrust::Unknown(share)) => {
            format!("{} of the step was not recorded", percent(*share))
        }
        NoReplay::Distrusted(Distrust::Contradicted(share)) => {
            format!("{} of the dependencies contradict the recorded times", percent(*share))
        }
        NoReplay::Distrusted(Distrust::Identity(off)) => {
            format!("replaying the steps without a change is off by {}", percent(off.abs()))
        }
        NoReplay::Distrusted(Distrust::Device(won)) => format!(
            "the device determines the step, but half of its work would win only {} in the replay: something waits for it \
             that was not recorded",
            percent(*won)
        ),
        NoReplay::Distrusted(Distrust::Host(won)) => format!(
            "the host determines the step, but half of its work would win only {} in the replay: something waits for it \
             that was not recorded",
            percent(*won)
        ),
    }
}
