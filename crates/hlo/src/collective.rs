//! What collectives move between devices.

use crate::module::{Instruction, Module};

/// The traffic of one execution of a collective.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Such as `all-reduce`, also for the start of an asynchronous one.
    pub kind: &'static str,
    /// Bytes of the array that is exchanged, per device.
    pub payload: u64,
    /// Devices that exchange with each other; 0 if unknown.
    pub ranks: u64,
    /// Bytes that each device sends at least; unknown without the number of devices.
    pub link_bytes: Option<u64>,
}

const KINDS: [&str; 8] = [
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
    "send",
];

/// The kind of collective behind an opcode, synchronous or as the start of an asynchronous one.
pub fn collective_kind(opcode: &str) -> Option<&'static str> {
    let plain = opcode.strip_suffix("-start").unwrap_or(opcode);
    KINDS.into_iter().find(|&kind| kind == plain)
}

impl<'a> Module<'a> {
    /// The traffic of an instruction; `None` if it exchanges nothing.
    pub fn collective(&self, instruction: &Instruction<'a>) -> Option<Collective> {
        let wrapped = (instruction.opcode == "async-start")
            .then(|| self.root_of(*instruction.called.first()?))
            .flatten();
        let instruction = wrapped.unwrap_or(instruction);
        let kind = collective_kind(instruction.opcode)?;
        let read = || {
            self.operands(instruction)
                .fold(0, |sum: u64, operand| sum.saturating_add(operand.shape.array_bytes()))
        };
        // The start of an asynchronous gather returns its operands beside the result.
        let result = match instruction.shape.parts.last() {
            Some(last) if instruction.opcode.ends_with("-start") => last.array_bytes(),
            _ => instruction.shape.array_bytes(),
        };
        let payload = if matches!(kind, "all-gather") { result } else { read() };
        let ranks = match instruction.group_size() {
            0 => self.devices,
            ranks => ranks,
        };
        Some(Collective { kind, payload, ranks, link_bytes: link_bytes(kind, payload, ranks) })
    }
}

/// The least that a device sends: every byte of the result has to reach every device once, in a ring or any other order.
fn link_bytes(kind: &str, payload: u64, ranks: u64) -> Option<u64> {
    if matches!(kind, "collective-permute" | "collective-broadcast" | "send") {
        return Some(payload);
    }
    let passes: u128 = if kind == "all-reduce" { 2 } else { 1 };
    let sent = passes * u128::from(payload) * u128::from(ranks.checked_sub(1)?) / u128::from(ranks);
    u64::try_from(sent).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_traffic_follows_from_the_ranks() {
        assert_eq!(link_bytes("all-reduce", 1000, 4), Some(1500));
        assert_eq!(link_bytes("all-gather", 1000, 4), Some(750));
        assert_eq!(link_bytes("collective-permute", 1000, 0), Some(1000));
        assert_eq!(link_bytes("all-reduce", 1000, 0), None, "unknown, never 0");
        assert_eq!(link_bytes("all-reduce", 1000, 1), Some(0));
    }
}
