//! Lanes of classic TensorFlow's records: what the name of a device says about where something ran.
//!
//! ```text
//! /…/device:CPU:0            what the host's threads ran          → threads of the host
//! /…/device:GPU:0            what the host did to launch kernels  → threads of the host
//! /…/device:GPU:0/stream:7   kernels                              → streams of the device
//! /…/device:GPU:0/stream:all all streams combined                 → derived; streams if there are no others
//! /…/device:GPU:0/memcpy     all copies combined                  → derived; streams if there are no others
//! ```

/// What a device's name says about a lane.
pub(super) enum LaneName<'a> {
    /// A host thread, which may launch work on an accelerator.
    Host(&'a str, Option<&'a str>),
    /// A queue of a device.
    Stream(&'a str, &'a str),
    /// A device that is neither.
    Other(&'a str),
}

pub(super) fn place(device: &str) -> LaneName<'_> {
    let lower = device.to_ascii_lowercase();
    let at = lower.rfind("/device:").or_else(|| lower.rfind("/gpu:")).or_else(|| lower.rfind("/cpu:"));
    let (task, unit) = device.split_at(at.unwrap_or(0));
    let unit = unit.trim_start_matches('/');
    let lower = unit.to_ascii_lowercase();
    match unit.find('/') {
        Some(slash) => {
            let end = device.len() - unit.len() + slash;
            LaneName::Stream(&device[..end], &unit[slash + 1..])
        }
        None if lower.contains("cpu:") => LaneName::Host(task, None),
        None if lower.contains("gpu:") => LaneName::Host(task, Some(unit)),
        None => LaneName::Other(device),
    }
}

/// Whether the lane repeats the content of other lanes of its device.
pub(super) fn repeats(device: &str, all: &[String]) -> bool {
    let lower = device.to_ascii_lowercase();
    let other_starts = |base: &str| all.iter().any(|other| other.starts_with(base) && *other != lower);
    // Copies are listed by themselves as well as on their streams.
    if let Some(device) = lower.strip_suffix("/memcpy") {
        return other_starts(&format!("{device}/stream:"));
    }
    lower.strip_suffix("all").is_some_and(|base| base.ends_with("stream:") && other_starts(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_placed_by_their_device() {
        let task = "/job:localhost/replica:0/task:0";
        let name = |device: &str| match place(&format!("{task}{device}")) {
            LaneName::Host(host, unit) => format!("host {host} {unit:?}"),
            LaneName::Stream(device, stream) => format!("stream {stream} of {device}"),
            LaneName::Other(device) => format!("other {device}"),
        };
        assert_eq!(name("/device:CPU:0"), format!("host {task} None"));
        assert_eq!(name("/device:GPU:1"), format!("host {task} Some(\"device:GPU:1\")"));
        assert_eq!(name("/device:GPU:1/stream:all"), format!("stream stream:all of {task}/device:GPU:1"));
        assert_eq!(name("/device:TPU:1"), format!("other {task}/device:TPU:1"));
        let all = ["/device:gpu:0/stream:all".to_owned(), "/device:gpu:0/stream:7".to_owned()];
        assert!(repeats("/device:GPU:0/stream:all", &all) && !repeats("/device:GPU:0/stream:all", &all[..1]));
    }

    #[test]
    fn copies_repeat_what_is_on_their_streams() {
        let all = ["/gpu:0/memcpy".to_owned(), "/gpu:0/stream:14".to_owned()];
        assert!(repeats("/gpu:0/memcpy", &all) && !repeats("/gpu:0/memcpy", &all[..1]));
        assert!(!repeats("/gpu:1/memcpy", &all));
    }
}
