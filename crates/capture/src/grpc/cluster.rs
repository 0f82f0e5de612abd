//! The processes of a cluster, as schedulers and frameworks name them: host lists of Slurm and of Kubernetes' stateful sets
//! (`node[01-04]:6009`, `trainer-[0-3].trainer:6009`), names in front of addresses (`worker1=10.0.0.4:6009`), and TF_CONFIG.

use serde_json::Value;

use super::address::{Address, AddressError};

/// Addresses in one text at most: more than any job has, few enough that a typing mistake does not ask for millions.
const MOST: usize = 100_000;

/// The addresses that a text names: one, or all of a host list. `NAME=` in front of one address names its file.
pub fn addresses(text: &str) -> Result<Vec<Address>, AddressError> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest),
        _ => (None, text),
    };
    // An IPv6 address stands in brackets too, and has colons inside them.
    let names = if rest.starts_with('[') || rest.starts_with("grpc://[") {
        vec![rest.to_owned()]
    } else {
        expanded(rest)
    };
    let all: Vec<Address> = names.iter().map(|one| one.parse()).collect::<Result<_, _>>()?;
    match (name, all.len()) {
        (Some(name), 1) => {
            Ok(all.into_iter().map(|address| Address { name: Some(name.to_owned()), ..address }).collect())
        }
        (Some(_), _) => Err(AddressError::NoHost(text.to_owned())),
        (None, _) => Ok(all),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

/// Host lists as Slurm writes them: `node[01-03,7],login:6009` is four hosts on one port.
fn expanded(text: &str) -> Vec<String> {
    let (hosts, port) = match text.rsplit_once(':') {
        Some((hosts, port)) => (hosts, format!(":{port}")),
        None => (text, String::new()),
    };
    let mut all = Vec::new();
    for part in parts(hosts) {
        let room = MOST.saturating_sub(all.len());
        all.extend(ranges(part).into_iter().take(room).map(|host| format!("{host}{port}")));
    }
    all
}

/// Splits at commas that are not inside brackets.
fn parts(hosts: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0_i32, 0, Vec::new());
    for (at, c) in hosts.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(&hosts[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&hosts[from..]);
    all
}

/// Replaces each bracket by its numbers, with leading zeros as written.
fn ranges(host: &str) -> Vec<String> {
    let inside = host.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)));
    let Some((before, (list, after))) = inside else { return vec![host.to_owned()] };
    let mut all = Vec::new();
    for piece in list.split(',') {
        let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
        let (Ok(from), Ok(until)) = (first.parse::<u64>(), last.parse::<u64>()) else {
            return vec![host.to_owned()];
        };
        for number in from..=until {
            if all.len() >= MOST {
                return all;
            }
            let tail = format!("{before}{number:0width$}{after}", width = first.len());
            all.extend(ranges(&tail));
        }
    }
    all
}

/// Why a text is not a TF_CONFIG.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// It has no cluster.
    #[error("it has no `cluster` with lists of addresses")]
    NoCluster,
    /// An address in it is none.
    #[error("{0}")]
    Address(AddressError),
}

/// The processes of a TF_CONFIG, each named by its job and number. TensorFlow's own ports are not the profiler's: all
/// profilers listen on `port`; of several tasks on one host, the second on the next port, and so on, in the order of the
/// cluster. An evaluator is not part of a job's steps.
pub fn of_tf_config(text: &str, port: u16) -> Result<Vec<Address>, ConfigError> {
    let config: Value = serde_json::from_str(text).map_err(|error| ConfigError::Json(error.to_string()))?;
    let cluster = config.get("cluster").and_then(Value::as_object).ok_or(ConfigError::NoCluster)?;
    let mut all: Vec<Address> = Vec::new();
    for (job, tasks) in cluster.iter().filter(|(job, _)| *job != "evaluator") {
        for (number, task) in tasks.as_array().ok_or(ConfigError::NoCluster)?.iter().take(MOST).enumerate() {
            let text = task.as_str().ok_or(ConfigError::NoCluster)?;
            let own: Address = text.parse().map_err(ConfigError::Address)?;
            let before = all.iter().filter(|other| other.host == own.host).count();
            let port = u16::try_from(before).ok().and_then(|before| port.checked_add(before));
            let port = port.ok_or_else(|| ConfigError::Address(AddressError::BadPort(text.to_owned())))?;
            all.push(Address { name: Some(format!("{job}{number}")), port, ..own });
        }
    }
    if all.is_empty() { Err(ConfigError::NoCluster) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        addresses(text).unwrap_or_default().iter().map(Address::to_string).collect()
    }

    #[test]
    fn host_lists_of_schedulers_are_all_their_hosts() {
        assert_eq!(shown("node[01-03,7]:6009"), ["node01:6009", "node02:6009", "node03:6009", "node7:6009"]);
        assert_eq!(shown("a[1-2],b:6009"), ["a1:6009", "a2:6009", "b:6009"]);
        assert_eq!(shown("r[0-1]n[0-1]:1"), ["r0n0:1", "r0n1:1", "r1n0:1", "r1n1:1"]);
        assert_eq!(
            shown("trainer-[0-1].trainer.ns:6009"),
            ["trainer-0.trainer.ns:6009", "trainer-1.trainer.ns:6009"]
        );
        assert_eq!(shown("[::1]:9999"), ["[::1]:9999"]);
        assert!(addresses("node[01-03]").is_err() && addresses("node[a-b]:1").is_err());
        assert!(addresses("n[0-99999999999]:1").is_ok_and(|all| all.len() <= MOST));
    }

    #[test]
    fn a_name_in_front_names_the_file() {
        let all = addresses("ps0=10.0.0.4:6009").unwrap_or_default();
        let stems: Vec<String> = all.iter().map(|address| address.file_stem(&all)).collect();
        assert_eq!(stems, ["ps0"]);
        assert!(addresses("w=a[1-2]:6009").is_err(), "one name for two");
    }

    #[test]
    fn tasks_of_tf_config_are_named_and_share_no_port() {
        let text = r#"{"cluster": {"worker": ["a:2222", "a:2223", "b:2222"], "ps": ["b:2224"]}, "task": {"type": "worker"}}"#;
        let all = of_tf_config(text, 6009).unwrap_or_default();
        let mut shown: Vec<String> =
            all.iter().map(|one| format!("{}={one}", one.name.as_deref().unwrap_or_default())).collect();
        shown.sort();
        assert_eq!(shown, ["ps0=b:6009", "worker0=a:6009", "worker1=a:6010", "worker2=b:6010"]);
        assert_eq!(of_tf_config("{}", 1), Err(ConfigError::NoCluster));
        assert!(matches!(of_tf_config("x", 1), Err(ConfigError::Json(_))));
        assert!(of_tf_config(r#"{"cluster": {"worker": ["a"]}}"#, 1).is_err());
    }
}
