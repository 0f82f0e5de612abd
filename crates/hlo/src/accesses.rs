//! The breakdown of an instruction's accesses by level of memory, as TPUs state it with each kind of event.

use crate::fields::{fields, last};

/// Fields of the breakdown, and the number of main memory in it.
const ACCESSES: u32 = 1;
const SPACE: u32 = 2;
const BYTES: u32 = 3;
const MAIN: i64 = 1;

/// Bytes that one execution reads from and writes to main memory; `None` if the breakdown is empty, as it is if neither side
/// lies there.
pub fn main_memory_bytes(breakdown: &[u8]) -> Option<u64> {
    let mut sum = None;
    let mut all = fields(breakdown);
    for (_, access) in (&mut all).filter(|(number, _)| *number == ACCESSES) {
        let number = |field| last(access.bytes(), field).map_or(0, |value| value.number());
        let bytes = if number(SPACE) == MAIN { u64::try_from(number(BYTES)).unwrap_or(0) } else { 0 };
        sum = Some(sum.unwrap_or(0_u64).saturating_add(bytes));
    }
    // Of a breakdown that is cut off, nobody knows the rest.
    sum.filter(|_| all.damage.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_main_memory_counts_and_an_empty_breakdown_is_unknown() {
        let access = |space: u8, bytes: u8| [10, 6, 8, 1, 16, space, 24, bytes];
        let both = [access(1, 100), access(2, 20), access(1, 3)].concat();
        assert_eq!(main_memory_bytes(&both), Some(103));
        assert_eq!(main_memory_bytes(&access(2, 20)), Some(0));
        assert_eq!(main_memory_bytes(&[]), None);
        assert_eq!(main_memory_bytes(&[10, 200, 8]), None, "cut off");
    }
}
