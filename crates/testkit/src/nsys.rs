//! Nsight Systems exports as SQL: tables and columns of real schemas, and rows chosen by tests.
//!
//! A script instead of bytes, so that this crate needs no database; the test runs it into a file.

use std::fmt::Write;

/// Tables of schema 3.24 with their columns.
pub const TABLES: &[(&str, &str)] = &[
    ("StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL"),
    ("META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT"),
    ("META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT"),
    (
        "TARGET_INFO_SYSTEM_ENV",
        "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    ),
    (
        "TARGET_INFO_SESSION_START_TIME",
        "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER",
    ),
    (
        "ANALYSIS_DETAILS",
        "globalVid INTEGER, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime INTEGER NOT NULL",
    ),
    (
        "DIAGNOSTIC_EVENT",
        "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
    ),
    ("PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT"),
    ("ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER"),
    (
        "TARGET_INFO_GPU",
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, uuid TEXT, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, computeMajor INTEGER, computeMinor INTEGER",
    ),
    (
        "TARGET_INFO_CUDA_DEVICE",
        "gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER",
    ),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, clusterZ INTEGER",
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, graphNodeId INTEGER",
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMSET",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
    ),
    (
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL",
    ),
    (
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL",
    ),
    (
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
    ),
    (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    ),
    (
        "CUPTI_ACTIVITY_KIND_OVERHEAD",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, overheadType INTEGER",
    ),
    (
        "NVTX_EVENTS",
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
    ),
    (
        "NVTX_PAYLOAD_SCHEMA_ENTRIES",
        "domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER",
    ),
    (
        "OSRT_API",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL",
    ),
    (
        "CUBLAS_EVENTS",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL",
    ),
    (
        "COMPOSITE_EVENTS",
        "id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER, globalTid INTEGER, cpuCycles INTEGER NOT NULL",
    ),
    (
        "SAMPLING_CALLCHAINS",
        "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, kernelMode INTEGER, stackDepth INTEGER NOT NULL",
    ),
    (
        "GPU_METRICS",
        "rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL",
    ),
    (
        "TARGET_INFO_GPU_METRICS",
        "typeId INTEGER NOT NULL, typeName TEXT NOT NULL, sourceId INTEGER NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL",
    ),
    (
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        "start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, address INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL",
    ),
    (
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, address INTEGER NOT NULL",
    ),
    (
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        "start INTEGER NOT NULL, end INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address INTEGER NOT NULL, numberOfPageFaults INTEGER NOT NULL",
    ),
];

/// An export under construction. Tables are created with their first row, as in real exports.
#[derive(Clone, Debug, Default)]
pub struct Export {
    script: String,
    created: Vec<&'static str>,
}

impl Export {
    /// An export with strings and nothing else.
    pub fn new() -> Self {
        let mut export = Export::default();
        export.create("StringIds");
        export
    }

    /// Creates a table without rows.
    pub fn create(&mut self, table: &str) -> &mut Self {
        if let Some((name, columns)) = TABLES.iter().find(|(name, _)| *name == table)
            && !self.created.contains(name)
        {
            self.created.push(name);
            self.raw(&format!("CREATE TABLE {name} ({columns});"));
        }
        self
    }

    /// Adds a row: columns and their values in SQL syntax. All other columns are 0 or empty.
    pub fn row(&mut self, table: &str, fields: &[(&str, &str)]) -> &mut Self {
        self.create(table);
        let columns = TABLES.iter().find(|(name, _)| *name == table).map_or("", |(_, columns)| columns);
        let mut all: Vec<(&str, &str)> = fields.to_vec();
        for column in columns.split(", ").filter(|column| column.contains("NOT NULL")) {
            let name = column.split(' ').next().unwrap_or_default();
            if !fields.iter().any(|(given, _)| *given == name) {
                all.push((name, if column.contains(" TEXT") { "''" } else { "0" }));
            }
        }
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let values: Vec<&str> = all.iter().map(|(_, value)| *value).collect();
        self.raw(&format!("INSERT INTO {table} ({}) VALUES ({});", names.join(","), values.join(",")))
    }

    /// Adds a string.
    pub fn string(&mut self, id: i64, text: &str) -> &mut Self {
        let text = format!("'{}'", text.replace('\'', "''"));
        self.row("StringIds", &[("id", &id.to_string()), ("value", &text)])
    }

    /// Adds any statement.
    pub fn raw(&mut self, statement: &str) -> &mut Self {
        let _ = writeln!(self.script, "{statement}");
        self
    }

    /// The script that makes the database.
    pub fn script(&self) -> &str {
        &self.script
    }
}

/// A thread number as in exports.
pub fn global_tid(pid: i64, tid: i64) -> i64 {
    1 << 48 | pid << 24 | tid
}

/// A small export with some of everything: two processes, one GPU each.
pub fn sample() -> Export {
    let mut export = Export::new();
    let names =
        ["cudaLaunchKernel_v7000", "gemm<float>(float *)", "gemm", "poll", "main thread", "cublasSgemm_v2"];
    for (id, name) in names.iter().enumerate() {
        export.string(id as i64 + 1, name);
    }
    for pid in [70, 71] {
        let (tid, process) = (global_tid(pid, pid).to_string(), global_tid(pid, 0).to_string());
        let device = (pid - 70).to_string();
        export.row("PROCESSES", &[("globalPid", &process), ("pid", &pid.to_string()), ("name", "'python3'")]);
        export.row("ThreadNames", &[("nameId", "5"), ("globalTid", &tid)]);
        for id in 1..=3 {
            let (called, ran) = (id * 10_000, id * 10_000 + 6_000);
            export.row(
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                &[
                    ("start", &called.to_string()),
                    ("end", &(called + 5_000).to_string()),
                    ("globalTid", &tid),
                    ("correlationId", &id.to_string()),
                    ("nameId", "1"),
                ],
            );
            export.row(
                "CUPTI_ACTIVITY_KIND_KERNEL",
                &[
                    ("start", &ran.to_string()),
                    ("end", &(ran + 3_000).to_string()),
                    ("deviceId", &device),
                    ("contextId", "1"),
                    ("streamId", "7"),
                    ("correlationId", &id.to_string()),
                    ("globalPid", &process),
                    ("demangledName", "2"),
                    ("shortName", "3"),
                    ("registersPerThread", "64"),
                    ("gridX", "216"),
                    ("gridY", "2"),
                    ("gridZ", "1"),
                    ("blockX", "256"),
                    ("blockY", "1"),
                    ("blockZ", "1"),
                    ("staticSharedMemory", "1024"),
                    ("dynamicSharedMemory", "512"),
                ],
            );
        }
    }
    export
}
