//! Which op on the host started which kernel. Classic TensorFlow records no numbers that join them, but both carry the
//! name of their node: a kernel belongs to the last run of its node that began before it, on the same device.

use rustc_hash::FxHashMap;
use stepscope_trace::KindId;

use super::lanes::{LaneName, place};

/// The runs of ops that start kernels, by device.
#[derive(Default)]
pub(super) struct Calls(FxHashMap<String, Runs>);

/// The runs of ops that start kernels of one device.
#[derive(Default)]
pub(super) struct Runs(FxHashMap<KindId, Vec<(i64, u64)>>);

impl Calls {
    /// Adds the runs of a lane: what ran and when it began.
    pub(super) fn add(&mut self, device: &str, events: impl Iterator<Item = (KindId, i64)>) {
        let LaneName::Host(_, Some(unit)) = place(device) else { return };
        let of = self.0.entry(unit_of(unit)).or_default();
        events.for_each(|(kind, start)| of.0.entry(kind).or_default().push((start, 0)));
    }

    /// Numbers all runs, from 1.
    pub(super) fn number(&mut self) {
        let mut devices: Vec<_> = self.0.iter_mut().collect();
        devices.sort_unstable_by(|a, b| a.0.cmp(b.0));
        let mut next = 0;
        for (_, Runs(of)) in devices {
            let mut kinds: Vec<_> = of.iter_mut().collect();
            kinds.sort_unstable_by_key(|(kind, _)| **kind);
            for (_, runs) in kinds {
                runs.sort_unstable();
                for (_, number) in runs {
                    next += 1;
                    *number = next;
                }
            }
        }
    }

    /// The runs of the device that a lane belongs to.
    pub(super) fn on(&self, device: &str) -> Option<&Runs> {
        match place(device) {
            LaneName::Host(_, Some(unit)) => self.0.get(&unit_of(unit)),
            LaneName::Stream(device, _) => self.0.get(&unit_of(device)),
            _ => None,
        }
    }
}

impl Runs {
    /// The number that a run of an op and its kernels share.
    pub(super) fn of_event(&self, kind: KindId, start: i64) -> Option<u64> {
        let runs = self.0.get(&kind)?;
        let before = runs.partition_point(|(began, _)| *began <= start).checked_sub(1)?;
        runs.get(before).map(|(_, number)| *number)
    }
}

/// `gpu:0`, however it is written.
fn unit_of(device: &str) -> String {
    let lower = device.to_ascii_lowercase();
    let unit = lower.rsplit('/').next().unwrap_or(&lower);
    unit.strip_prefix("device:").unwrap_or(unit).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_belongs_to_the_last_run_of_its_node_on_its_device() {
        let (matmul, relu) = (KindId::from_index(0), KindId::from_index(1));
        let host = "/job:worker/replica:0/task:0/device:GPU:1";
        let mut calls = Calls::default();
        calls.add(host, [(matmul, 100), (matmul, 500)].into_iter());
        calls.add("/job:worker/replica:0/task:0/device:CPU:0", [(relu, 100)].into_iter());
        calls.number();
        let of = |device, kind, start| -> Option<u64> { calls.on(device)?.of_event(kind, start) };
        assert_eq!(of(host, matmul, 100), Some(1));
        let kernel = |start| of("/device:GPU:1/stream:14", matmul, start);
        assert_eq!([kernel(90), kernel(130), kernel(510)], [None, Some(1), Some(2)]);
        assert_eq!(of("/device:GPU:0/stream:14", matmul, 130), None, "another device");
        assert_eq!(of("/device:GPU:1/stream:14", relu, 130), None, "never launched");
    }
}
