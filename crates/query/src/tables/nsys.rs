//! Views: other names for events, and the tables of `nsys export`, so that queries written for those run on any format.
//!
//! Identifiers that Nsight Systems builds from numbers of process and thread are built the same way. What a recording
//! does not hold is NULL.

use crate::schema::View;

/// A thread as Nsight Systems numbers it: process and thread, 24 bits each.
macro_rules! global_tid {
    () => {
        "(SELECT (coalesce(p.pid, 0) & 0xffffff) << 24 | (t.number & 0xffffff) FROM track t \
          JOIN process p ON p.id = t.process_id WHERE t.id = e.track_id)"
    };
}

macro_rules! correlation {
    () => {
        "coalesce(arg(e.id, 'correlation_id'), arg(e.id, 'correlation'))"
    };
}

macro_rules! on_device {
    () => {
        concat!(
            "SELECT e.ts AS start, e.ts + e.dur AS \"end\", \
             coalesce((SELECT d.number FROM track t JOIN device d ON d.process_id = t.process_id \
              WHERE t.id = e.track_id), 0) AS deviceId, \
             0 AS contextId, (SELECT t.number FROM track t WHERE t.id = e.track_id) AS streamId, ",
            correlation!(),
            " AS correlationId, NULL AS globalPid, e.id AS event_id"
        )
    };
}

/// All views.
pub const VIEWS: &[View] = &[
    View {
        name: "slice",
        about: "Events, under Perfetto's name.",
        query: "SELECT id, ts, dur, name, category, track_id, depth, parent_id, step, state, self_dur, op, host, args \
                FROM event",
    },
    View {
        name: "thread",
        about: "Tracks that are threads.",
        query: "SELECT t.id AS id, t.name AS name, t.number AS tid, p.pid AS pid, t.process_id AS process_id, \
                t.events AS events, t.host AS host \
                FROM track t LEFT JOIN process p ON p.id = t.process_id WHERE t.kind = 'thread'",
    },
    View {
        name: "StringIds",
        about: "Texts, as in an export of Nsight Systems.",
        query: "SELECT id, value FROM string",
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        about: "Kernels, as in an export of Nsight Systems.",
        query: concat!(
            on_device!(),
            ", e.name_id AS demangledName, e.name_id + 1 AS shortName, e.name_id AS mangledName, \
             launch_config(e.id, 'gridX') AS gridX, launch_config(e.id, 'gridY') AS gridY, \
             launch_config(e.id, 'gridZ') AS gridZ, launch_config(e.id, 'blockX') AS blockX, \
             launch_config(e.id, 'blockY') AS blockY, launch_config(e.id, 'blockZ') AS blockZ, \
             launch_config(e.id, 'registers') AS registersPerThread, \
             launch_config(e.id, 'shared') AS staticSharedMemory, 0 AS dynamicSharedMemory \
             FROM event e WHERE e.role IN ('kernel', 'collective')"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        about: "Copies, as in an export of Nsight Systems. copyKind: 1 to a device, 2 from a device, 8 on devices.",
        query: concat!(
            on_device!(),
            ", coalesce(arg(e.id, 'bytes'), arg(e.id, 'Bytes')) AS bytes, \
             CASE e.state WHEN 'transfer_in' THEN 1 WHEN 'transfer_out' THEN 2 ELSE 8 END AS copyKind \
             FROM event e WHERE e.role = 'copy'"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        about: "Fills of device memory, as in an export of Nsight Systems.",
        query: concat!(
            on_device!(),
            ", coalesce(arg(e.id, 'bytes'), arg(e.id, 'Bytes')) AS bytes FROM event e WHERE e.role = 'memset'"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        about: "Calls of the CUDA API, as in an export of Nsight Systems.",
        query: concat!(
            "SELECT e.ts AS start, e.ts + e.dur AS \"end\", ",
            global_tid!(),
            " AS globalTid, ",
            correlation!(),
            " AS correlationId, e.name_id AS nameId, 0 AS returnValue, e.id AS event_id \
             FROM event e WHERE e.role IN ('launch', 'launch_copy', 'sync', 'device_memory')"
        ),
    },
    View {
        name: "NVTX_EVENTS",
        about: "Ranges that programs marked, as in an export of Nsight Systems.",
        query: concat!(
            "SELECT e.ts AS start, e.ts + e.dur AS \"end\", 59 AS eventType, NULL AS rangeId, NULL AS category, \
             e.name AS text, e.name_id AS textId, 0 AS domainId, ",
            global_tid!(),
            " AS globalTid, e.id AS event_id FROM event e WHERE e.role IN ('annotation', 'step_marker')"
        ),
    },
    View {
        name: "TARGET_INFO_GPU",
        about: "GPUs, as in an export of Nsight Systems.",
        query: "SELECT number AS id, name, number AS cuDevice, memory_bytes AS totalMemory, \
                memory_bandwidth AS memoryBandwidth, multiprocessors AS smCount, clock_khz * 1000 AS clockRate, \
                compute_capability AS computeCapability FROM device WHERE kind = 'gpu'",
    },
];
