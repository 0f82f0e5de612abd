//! Which columns the tables have, and values of an export, column by column.

use std::borrow::Cow;

use stepscope_read::nsys::ExportValue;

use super::made::Sort;
use super::rows;
use crate::cell::Cell;
use crate::schema::{Column, From, Holds, Table};

/// What is said about columns that Nsight Systems describes.
const THEIRS: &str = "as Nsight Systems exports it";

macro_rules! nsight {
    ($TABLE:ident: $name:literal, $sort:ident, $about:literal, $($column:literal $holds:ident)*) => {
        const $TABLE: Table = Table {
            name: $name,
            about: $about,
            columns: Cow::Borrowed(&[
                $(Column::new($column, Holds::$holds, THEIRS),)*
                Column::new("event_id", Holds::Int, "the event").hidden(),
                Column::new("host", Holds::Text, "its host").hidden(),
            ]),
            from: From::Rows(|recording| {
                static DECLARED: Table = $TABLE;
                rows(recording, &DECLARED, Sort::$sort)
            }),
        };
    };
}

/// The tables of an export.
pub(crate) fn all() -> [Table; 8] {
    [STRINGS, KERNELS, COPIES, FILLS, CALLS, WAITS, RANGES, GPUS]
}

nsight! { STRINGS: "StringIds", Strings, "Texts, as in an export of Nsight Systems.", "id" Int "value" Text }

nsight! { KERNELS: "CUPTI_ACTIVITY_KIND_KERNEL", Kernels, "Kernels, as in an export of Nsight Systems.",
    "start" Int "end" Int "deviceId" Int "contextId" Int "greenContextId" Int "streamId" Int "correlationId" Int
    "globalPid" Int "demangledName" Int "shortName" Int "mangledName" Int "launchType" Int "cacheConfig" Int
    "registersPerThread" Int "gridX" Int "gridY" Int "gridZ" Int "blockX" Int "blockY" Int "blockZ" Int
    "staticSharedMemory" Int "dynamicSharedMemory" Int "localMemoryPerThread" Int "localMemoryTotal" Int "gridId" Int
    "sharedMemoryExecuted" Int "graphNodeId" Int "sharedMemoryLimitConfig" Int "qmdBulkReleaseDone" Int
    "qmdPreexitDone" Int "qmdLastCtaDone" Int "graphId" Int "clusterX" Int "clusterY" Int "clusterZ" Int
    "clusterSchedulingPolicy" Int "maxPotentialClusterSize" Int "maxActiveClusters" Int
    "sharedMemoryRequestedPercentage" Int "tensorSizeMinusOneElements" Text
}

nsight! { COPIES: "CUPTI_ACTIVITY_KIND_MEMCPY", Copies,
    "Copies, as in an export of Nsight Systems. copyKind: 1 to a device, 2 from a device, 8 on devices.",
    "start" Int "end" Int "deviceId" Int "contextId" Int "greenContextId" Int "streamId" Int "correlationId" Int
    "globalPid" Int "bytes" Int "copyKind" Int "deprecatedSrcId" Int "srcKind" Int "dstKind" Int "srcDeviceId" Int
    "srcContextId" Int "dstDeviceId" Int "dstContextId" Int "migrationCause" Int "graphNodeId" Int
    "virtualAddress" Int "copyCount" Int
}

nsight! { FILLS: "CUPTI_ACTIVITY_KIND_MEMSET", Fills, "Fills of device memory, as in an export of Nsight Systems.",
    "start" Int "end" Int "deviceId" Int "contextId" Int "greenContextId" Int "streamId" Int "correlationId" Int
    "globalPid" Int "value" Int "bytes" Int "graphNodeId" Int "memKind" Int
}

nsight! { CALLS: "CUPTI_ACTIVITY_KIND_RUNTIME", Calls, "Calls of the CUDA API, as in an export of Nsight Systems.",
    "start" Int "end" Int "eventClass" Int "globalTid" Int "correlationId" Int "nameId" Int "returnValue" Int
    "callchainId" Int
}

nsight! { WAITS: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", Waits,
    "Waits for devices, as in an export of Nsight Systems; other formats have none.",
    "start" Int "end" Int "deviceId" Int "contextId" Int "greenContextId" Int "streamId" Int "correlationId" Int
    "globalPid" Int "deprecatedSyncType" Int "syncType" Int "eventId" Int "eventSyncId" Int
}

nsight! { RANGES: "NVTX_EVENTS", Ranges, "Ranges that programs marked, as in an export of Nsight Systems.",
    "start" Int "end" Int "eventType" Int "rangeId" Int "category" Int "color" Int "text" Text "globalTid" Int
    "endGlobalTid" Int "textId" Int "domainId" Int "uint64Value" Int "int64Value" Int "doubleValue" Real
    "uint32Value" Int "int32Value" Int "floatValue" Real "jsonTextId" Int "jsonText" Text "binaryData" Text
}

nsight! { GPUS: "TARGET_INFO_GPU", Gpus, "GPUs, as in an export of Nsight Systems.",
    "vmId" Int "id" Int "name" Text "busLocation" Text "isDiscrete" Int "l2CacheSize" Int "totalMemory" Int
    "memoryBandwidth" Int "clockRate" Int "smCount" Int "pwGpuId" Int "uuid" Text "luid" Int "chipName" Text
    "cuDevice" Int "ctxswDevPath" Text "ctrlDevPath" Text "revision" Int "nodeMask" Int "constantMemory" Int
    "maxIPC" Int "maxRegistersPerBlock" Int "maxShmemPerBlock" Int "maxShmemPerBlockOptin" Int "maxShmemPerSm" Int
    "maxRegistersPerSm" Int "threadsPerWarp" Int "asyncEngines" Int "maxWarpsPerSm" Int "maxBlocksPerSm" Int
    "maxThreadsPerBlock" Int "maxBlockDimX" Int "maxBlockDimY" Int "maxBlockDimZ" Int "maxGridDimX" Int
    "maxGridDimY" Int "maxGridDimZ" Int "computeMajor" Int "computeMinor" Int "smMajor" Int "smMinor" Int
}

/// Stands for NULL among numbers.
const NULL: i64 = i64::MIN;

/// The values of a column: numbers take eight bytes each, and a column without values none.
#[derive(Debug)]
pub(super) enum Values {
    Nulls(usize),
    Ints(Vec<i64>),
    Cells(Vec<Cell<'static>>),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Values::Nulls(rows) => *rows,
            Values::Ints(all) => all.len(),
            Values::Cells(all) => all.len(),
        }
    }

    pub(super) fn get(&self, row: usize) -> Cell<'_> {
        match self {
            Values::Nulls(_) => Cell::Null,
            Values::Ints(all) => all.get(row).copied().filter(|value| *value != NULL).into(),
            Values::Cells(all) => match all.get(row) {
                Some(Cell::Text(text)) => Cell::Text(Cow::Borrowed(text.as_ref())),
                Some(other) => other.clone(),
                None => Cell::Null,
            },
        }
    }

    /// A whole number.
    pub(super) fn int(&self, row: usize) -> Option<i64> {
        match self.get(row) {
            Cell::Int(value) => Some(value),
            _ => None,
        }
    }
}

/// A column that grows.
#[derive(Debug)]
pub(super) struct Writer(Values);

impl Default for Writer {
    fn default() -> Self {
        Writer(Values::Nulls(0))
    }
}

impl Writer {
    pub(super) fn push(&mut self, value: ExportValue<'_>) {
        match (&mut self.0, value) {
            (Values::Nulls(rows), ExportValue::Null) => *rows += 1,
            (Values::Nulls(rows), ExportValue::Int(value)) if value != NULL => {
                let mut all = vec![NULL; *rows];
                all.push(value);
                self.0 = Values::Ints(all);
            }
            (Values::Ints(all), ExportValue::Null) => all.push(NULL),
            (Values::Ints(all), ExportValue::Int(value)) if value != NULL => all.push(value),
            (Values::Cells(all), value) => all.push(owned(value)),
            (before, value) => {
                let mut all: Vec<Cell<'static>> =
                    (0..before.len()).map(|row| kept(before.get(row))).collect();
                all.push(owned(value));
                self.0 = Values::Cells(all);
            }
        }
    }

    pub(super) fn finish(self) -> Values {
        self.0
    }
}

fn owned(value: ExportValue<'_>) -> Cell<'static> {
    match value {
        ExportValue::Null => Cell::Null,
        ExportValue::Int(value) => Cell::Int(value),
        ExportValue::Real(value) => Cell::Real(value),
        ExportValue::Text(text) => Cell::from(String::from_utf8_lossy(text).into_owned()),
    }
}

fn kept(cell: Cell<'_>) -> Cell<'static> {
    match cell {
        Cell::Null => Cell::Null,
        Cell::Int(value) => Cell::Int(value),
        Cell::Real(value) => Cell::Real(value),
        Cell::Text(text) => Cell::from(text.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_what_it_gets_whatever_came_before() {
        let all = [
            ExportValue::Null,
            ExportValue::Int(7),
            ExportValue::Null,
            ExportValue::Int(i64::MIN),
            ExportValue::Real(0.5),
            ExportValue::Text(b"x"),
        ];
        let mut writer = Writer::default();
        all.iter().for_each(|value| writer.push(*value));
        let column = writer.finish();
        let got: Vec<Cell<'_>> = (0..7).map(|row| column.get(row)).collect();
        let wanted =
            [Cell::Null, 7_i64.into(), Cell::Null, i64::MIN.into(), Cell::Real(0.5), "x".into(), Cell::Null];
        assert_eq!(got, wanted);
        assert_eq!((column.len(), column.int(1), column.int(5)), (6, Some(7), None));
    }
}
