//! What the processes of a job are called. A file that was captured from a port is named after its address, and files that
//! several processes of a machine wrote themselves after the machine, which says nothing about their part. TensorFlow names
//! both tasks in every tensor that travels between processes, so that a look at the file's text tells worker, parameter
//! server and coordinator apart; a worker of a collective job names its own devices alone; and threads of a tf.data service
//! give it away.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_trace::Delivers;

use super::{ProfileFile, SessionFiles};
use crate::input::Input;

/// Larger files keep their names: looking through them takes longer than the name is worth.
const LARGEST: u64 = 256 << 20;

/// A part in a job, as far as the text of a file says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// A task, as TensorFlow names it: `worker/1`, `ps/0`.
    Task(String, u64),
    /// Calls functions that others run.
    Caller,
    /// Works for a tf.data service.
    DataWorker,
    /// Asks a tf.data service.
    Trainer,
}

/// Names the files of a session by their parts, where their own names are addresses or numbers.
pub(super) fn name_parts(session: &mut SessionFiles) {
    let repeated = repeated(session);
    let nameless = |file: &ProfileFile| {
        let says_nothing = is_address(&file.host) || repeated.contains(bare(&file.host));
        says_nothing && file.format.delivers == Delivers::Timeline
    };
    if session.files.len() < 2 || !session.files.iter().any(nameless) {
        return;
    }
    let parts: Vec<Option<Part>> = session
        .files
        .iter()
        .map(|file| {
            let wanted = nameless(file) && file.bytes <= LARGEST && file.path.is_file();
            part_of(Input::open(&file.path).ok().filter(|_| wanted)?.raw())
        })
        .collect();
    let tasks = parts.iter().flatten().any(|part| matches!(part, Part::Task(..)));
    let served = parts.contains(&Some(Part::DataWorker));
    let data_workers = parts.iter().flatten().filter(|part| **part == Part::DataWorker).count();
    let mut numbers: BTreeMap<Part, u64> = BTreeMap::new();
    let mut names: Vec<Option<String>> = Vec::new();
    for part in parts {
        let number = part.clone().map(|part| {
            let next = numbers.entry(part).or_default();
            *next += 1;
            *next - 1
        });
        names.push(match (part, number) {
            (Some(Part::Task(job, task)), Some(0)) => Some(format!("{job}/{task}")),
            (Some(Part::Caller), Some(0)) if tasks => Some("coordinator".to_owned()),
            (Some(Part::DataWorker), _) if data_workers == 1 => Some("data worker".to_owned()),
            (Some(Part::DataWorker), Some(number)) => Some(format!("data worker {number}")),
            (Some(Part::Trainer | Part::Caller), Some(0)) if served => Some("trainer".to_owned()),
            _ => None,
        });
    }
    let taken: BTreeSet<String> = session.files.iter().map(|file| file.host.clone()).collect();
    for (file, name) in session.files.iter_mut().zip(names) {
        if let Some(name) = name.filter(|name| !taken.contains(name)) {
            file.host = name;
        }
    }
}

/// Whether a name is a machine's address and a port: `127.0.0.1_27320`, `worker-3_6009`.
fn is_address(host: &str) -> bool {
    host.rsplit_once('_').is_some_and(|(machine, port)| {
        !machine.is_empty() && (2..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A name without the number that tells files of one machine apart: `vm (2)`.
fn bare(host: &str) -> &str {
    let number =
        |end: &str| end.strip_suffix(')').is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_digit()));
    host.rsplit_once(" (").filter(|(_, end)| number(end)).map_or(host, |(bare, _)| bare)
}

/// Names that several files of the session share.
fn repeated(session: &SessionFiles) -> BTreeSet<String> {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    session.files.iter().for_each(|file| *times.entry(bare(&file.host)).or_default() += 1);
    times.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name.to_owned()).collect()
}

fn part_of(file: &[u8]) -> Option<Part> {
    let has = |text: &str| memchr::memmem::find(file, text.as_bytes()).is_some();
    if has("tf_data_service_") || has("tf_data_standalone") {
        return Some(Part::DataWorker);
    }
    if has("GetDataServiceElement") {
        return Some(Part::Trainer);
    }
    let collective = has("CollectiveExecutor::");
    if !collective && !has("GrpcWorkerEnv") {
        return None;
    }
    sender(file).or_else(|| own_task(file).filter(|_| collective)).or_else(|| {
        let calls = has("TFE_Py_Execute") && !has("ExecutorState::Process") && !collective;
        calls.then_some(Part::Caller)
    })
}

/// The only task of a cluster whose devices a file names: `/job:worker/replica:0/task:1/device:CPU:0`. A program outside of
/// a cluster calls its job `localhost`.
fn own_task(file: &[u8]) -> Option<Part> {
    let mut own = None;
    for at in memchr::memmem::find_iter(file, JOB) {
        let Some((job, number)) = task(text_at(file, at)) else { continue };
        let found = Part::Task(job, number);
        if own.as_ref().is_some_and(|own| *own != found) {
            return None;
        }
        own = Some(found);
    }
    own.filter(|own| !matches!(own, Part::Task(job, _) if job == "localhost"))
}

const JOB: &[u8] = b"/job:";

/// The text that begins here; empty if it is none.
fn text_at(file: &[u8], at: usize) -> &str {
    /// Names of tensors are shorter.
    const LONGEST: usize = 400;
    let text = &file[at..file.len().min(at + LONGEST)];
    let end = text.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).unwrap_or_default()
}

/// The task that most tensors between processes are sent from: `/job:worker/replica:0/task:1/…;…;/job:ps/…`.
fn sender(file: &[u8]) -> Option<Part> {
    let mut tasks: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut skip = 0;
    for at in memchr::memmem::find_iter(file, JOB) {
        if at < skip {
            continue;
        }
        let text = text_at(file, at);
        let mut pieces = text.split(';');
        let (from, to) = (pieces.next().and_then(task), pieces.nth(1).and_then(task));
        if let (Some(from), Some(to)) = (from, to) {
            skip = at + text.len();
            if from != to {
                *tasks.entry(from).or_default() += 1;
            }
        }
    }
    let ((job, number), _) = tasks.into_iter().max_by_key(|(_, sent)| *sent)?;
    Some(Part::Task(job, number))
}

fn task(device: &str) -> Option<(String, u64)> {
    let value = |name: &str| device.split('/').find_map(|part| part.strip_prefix(name)?.strip_prefix(':'));
    let job =
        value("job").filter(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
    // Other bytes of the file may follow the name of a device.
    let number = value("task")?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    Some((job.to_owned(), number.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUSH: &str =
        "/job:worker/replica:0/task:1/device:CPU:0;9f;/job:ps/replica:0/task:0/device:CPU:0;edge_9_x;0:0";

    #[test]
    fn a_file_is_named_by_the_task_that_sends_from_it() {
        let file = |text: &str| format!("\u{1}tf_GrpcWorkerEnvQueues/1\u{2}{text}\u{1}").into_bytes();
        assert_eq!(part_of(&file(PUSH)), Some(Part::Task("worker".into(), 1)));
        assert_eq!(part_of(&file("TFE_Py_ExecuteCancelable")), Some(Part::Caller));
        assert_eq!(part_of(&file("TFE_Py_ExecuteCancelable ExecutorState::Process")), None);
        assert_eq!(part_of(&file("/job:worker/replica:0/task:1")), None);
        let worker =
            "CollectiveExecutor::CompleteParams\u{2})/job:worker/replica:0/task:1/device:CPU:0*\u{1}";
        assert_eq!(part_of(&file(worker)), Some(Part::Task("worker".into(), 1)));
        assert_eq!(part_of(&file(&worker.replace("job:worker", "job:localhost"))), None);
        let both = format!("{worker}/job:worker/replica:0/task:0/device:CPU:0");
        assert_eq!(part_of(&file(&both)), None, "two tasks: its own is not known");
        assert_eq!(part_of(b"tf_data_service_fcfs_prefetch_thread/1"), Some(Part::DataWorker));
        assert_eq!(part_of(b""), None);
    }

    #[test]
    fn files_of_one_machine_share_its_name() {
        assert_eq!((bare("vm (2)"), bare("vm"), bare("vm (a)")), ("vm", "vm", "vm (a)"));
    }

    #[test]
    fn only_addresses_are_replaced() {
        assert!(is_address("127.0.0.1_27320") && is_address("worker-3_6009"));
        assert!(
            !is_address("worker0") && !is_address("box_1") && !is_address("rank_0") && !is_address("_6009")
        );
    }
}
