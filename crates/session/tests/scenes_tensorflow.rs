//! Verdicts on TensorFlow programs with a known truth, on the host's processor.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use stepscope_analyze::Category;
use stepscope_read::{Bytes, Input, Progress};
use stepscope_results::report::Report;
use stepscope_session::Profile;
use stepscope_session::report::report;
use stepscope_testkit::stage::tensorflow::{Trouble, recorded};

fn told(trouble: Trouble) -> Report {
    let input = Input::from_bytes("trainer.xplane.pb", Bytes::held(recorded(trouble)));
    let inputs = vec![("trainer".to_owned(), Ok(input))];
    let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
    report(&profile, vec!["run".to_owned()]).unwrap()
}

struct Expected {
    trouble: Trouble,
    verdict: &'static str,
    /// The category of the trouble, and its milliseconds per step.
    owns: (Category, f64),
    /// What a fix saves per step, at least; `None` if nothing may be promised.
    saves: Option<f64>,
    says: &'static [&'static str],
    never: &'static [&'static str],
}

fn all() -> Vec<Expected> {
    let case =
        |trouble, verdict, owns, saves, says, never| Expected { trouble, verdict, owns, saves, says, never };
    vec![
        case(
            Trouble::None,
            "compute-bound",
            (Category::Compute, 17.0),
            None,
            &["Nothing else was found"],
            &["healthy", "float64"],
        ),
        case(Trouble::Double, "compute-bound", (Category::Compute, 17.0), Some(8.0), &["float64"], &[]),
        case(
            Trouble::InnerLoop,
            "dispatch-bound",
            (Category::Compute, 1.8),
            Some(18.0),
            &["tf.map_fn", "Vectorise", "120 rounds"],
            &["ds.take"],
        ),
        case(
            Trouble::Print,
            "output-bound",
            (Category::Compute, 16.0),
            Some(11.0),
            &["StringFormat", "tf.print"],
            &["checkpoint"],
        ),
        case(
            Trouble::RemoteTensors,
            "communication-bound",
            (Category::Communication, 12.0),
            Some(11.0),
            &["other processes"],
            &["NCCL", "bytes_per_pack"],
        ),
        case(
            Trouble::RemoteCalls,
            "communication-bound",
            (Category::Communication, 18.88),
            Some(18.0),
            &["other processes"],
            &["ds.take"],
        ),
        case(
            Trouble::LockedByInput,
            "input-bound",
            (Category::Input, 11.5),
            Some(11.0),
            &["interpreter lock", "processes"],
            &["steps_per_execution", "ds.take"],
        ),
        case(
            Trouble::Locked,
            "host-python",
            (Category::Python, 11.9),
            Some(11.0),
            &["interpreter lock", "multiprocessing"],
            &["ds.take"],
        ),
        case(
            Trouble::Refill,
            "input-bound",
            (Category::Input, 25.0),
            Some(24.0),
            &["`.shuffle(...)`", "every 4 steps", "smaller buffer"],
            &["num_parallel_calls"],
        ),
        case(
            Trouble::Evaluation,
            "step-variance",
            (Category::Compute, 17.0 + 95.0 / 4.0),
            Some(24.0),
            &["evaluation", "every 4 steps"],
            &[],
        ),
        case(
            Trouble::EvaluationOnce,
            "compute-bound",
            (Category::Compute, 17.0),
            None,
            &["Nothing else was found"],
            &["evaluation"],
        ),
        case(
            Trouble::EagerOnBusyMachine,
            "eager-dispatch",
            (Category::Dispatch, 4.8),
            Some(17.0),
            &["60 ops per step", "@tf.function"],
            &[],
        ),
        case(
            Trouble::SavedEachStep,
            "host-python",
            (Category::Compute, 4.0),
            Some(8.0),
            &["reads 8 variables per step", "ModelCheckpoint"],
            &["@tf.function"],
        ),
    ]
}

#[test]
fn troubles_of_tensorflow_programs_are_found_with_their_cure() {
    let mut faults = Vec::new();
    for expected in all() {
        let told = told(expected.trouble);
        let step = told.summary.length_ms();
        let mut check = |holds: bool, what: String| {
            if !holds {
                faults.push(format!("{:?}: {what}", expected.trouble));
            }
        };
        let Some(first) = told.findings.iter().find(|finding| finding.explains()) else {
            check(false, "no verdict".to_owned());
            continue;
        };
        check(first.id() == expected.verdict, format!("verdict {}", first.id()));
        let (category, ms) = expected.owns;
        let owned = step * told.summary.fraction(category);
        check((owned - ms).abs() <= 0.2, format!("{category:?} owns {owned} ms, not {ms}"));
        let gain = first.gain_ms;
        check(gain.is_none_or(|gain| gain <= step), format!("saves {gain:?} of {step}"));
        let enough = match expected.saves {
            Some(least) => gain.is_some_and(|gain| gain >= least),
            None => gain.is_none(),
        };
        check(enough, format!("saves {gain:?}, not {:?}", expected.saves));
        let words = first.words();
        let text = format!("{} {} {}", words.summary, words.evidence.join(" "), words.advice.join(" "));
        for wanted in expected.says {
            check(text.contains(wanted), format!("does not say {wanted}: {text}"));
        }
        for unwanted in expected.never {
            check(!text.contains(unwanted), format!("says {unwanted}: {text}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
