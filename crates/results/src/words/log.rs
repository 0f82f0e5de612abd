//! What is wrong with a log of values.

use stepscope_trace::series::{LogDamage, LogFault};

use crate::format::plural;

/// Where a file is damaged.
pub fn damage(damage: &LogDamage) -> String {
    let (file, at) = (&damage.file, damage.at);
    match damage.what {
        LogFault::Record => {
            format!("{file}: the record at byte {at} does not match its checksum; it is excluded.")
        }
        LogFault::Length => {
            format!(
                "{file}: the length of the record at byte {at} does not match its checksum; the record does, and is kept."
            )
        }
        LogFault::Gap(bytes) => {
            format!("{file}: {} from byte {at} on are not records; skipped.", plural(bytes, "byte", "bytes"))
        }
        LogFault::Cut => {
            format!("{file}: ends within the record at byte {at}: it is still being written, or truncated.")
        }
        LogFault::OverBudget => format!(
            "{file}: reading stopped at byte {at} of the decompressed file, the limit for its size. If you trust the file, \
             raise the limit, for example with `--budget 16GB`."
        ),
        LogFault::Nothing => format!("{file}: not an event file: it contains no records."),
    }
}
