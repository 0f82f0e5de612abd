//! What the processes of a job are called. A file that was captured from a port is named after its address, which says
//! nothing about its part. TensorFlow names both tasks in every tensor that travels between processes, so that a look at
//! the file's text tells worker, parameter server and coordinator apart, and threads of a tf.data service give it away.

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
    let nameless = |file: &ProfileFile| is_address(&file.host) && file.format.delivers == Delivers::Timeline;
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

fn part_of(file: &[u8]) -> Option<Part> {
    let has = |text: &str| memchr::memmem::find(file, text.as_bytes()).is_some();
    if has("tf_data_service_") || has("tf_data_standalone") {
        return Some(Part::DataWorker);
    }
    if has("GetDataServiceElement") {
        return Some(Part::Trainer);
    }
    if !has("GrpcWorkerEnv") {
        return None;
    }
    sender(file).or_else(|| {
        let calls = has("TFE_Py_Execute") && !has("ExecutorState::Process") && !has("CollectiveExecutor::");
        calls.then_some(Part::Caller)
    })
}

/// The task that most tensors between processes are sent from: `/job:worker/replica:0/task:1/…;…;/job:ps/…`.
fn sender(file: &[u8]) -> Option<Part> {
    const JOB: &[u8] = b"/job:";
    /// Names of tensors are shorter.
    const LONGEST: usize = 400;
    let mut tasks: BTreeMap<(String, u64), u64> = BTreeMap::new();
    let mut skip = 0;
    for at in memchr::memmem::find_iter(file, JOB) {
        if at < skip {
            continue;
        }
        let text = &file[at..file.len().min(at + LONGEST)];
        let end = text.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(text.len());
        let Ok(text) = std::str::from_utf8(&text[..end]) else { continue };
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
    Some((job.to_owned(), value("task")?.parse().ok()?))
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
        assert_eq!(part_of(b"tf_data_service_fcfs_prefetch_thread/1"), Some(Part::DataWorker));
        assert_eq!(part_of(b""), None);
    }

    #[test]
    fn only_addresses_are_replaced() {
        assert!(is_address("127.0.0.1_27320") && is_address("worker-3_6009"));
        assert!(
            !is_address("worker0") && !is_address("box_1") && !is_address("rank_0") && !is_address("_6009")
        );
    }
}
