/** Rows of the fleet report as columns of a table. */
import type { Fleet, FleetFile, FleetHost, FleetJob, FleetWork } from "../../server/schema";
import type { Column, Value } from "../../server/views";

type Spec<R> = [key: string, title: string, format: Column["format"], of: (row: R) => Value, hidden?: boolean];

/** Columns in the order of the list. */
export function columnsOf<R>(rows: readonly R[], specs: readonly Spec<R>[]): Column[] {
  return specs.map(([key, title, format, of, hidden = false]) => ({
    key,
    title,
    format,
    hidden,
    optional: false,
    values: rows.map(of),
  }));
}

/** Devices that a job loses. */
export function lostDevices(job: FleetJob): number {
  return (job.lost_fraction ?? 0) * job.devices;
}

export function jobColumns(jobs: readonly FleetJob[]): Column[] {
  return columnsOf(jobs, [
    ["job", "Job", "name", (job) => job.job],
    ["devices", "Devices", "count", (job) => job.devices],
    ["lost_fraction", "Lost", "percent", (job) => job.lost_fraction],
    ["lost_devices", "Devices lost", "short", (job) => (job.lost_fraction === null ? null : lostDevices(job))],
    ["device_hours", "Device hours", "short", (job) => job.device_hours],
    ["lost_device_hours", "Hours lost", "short", (job) => job.lost_device_hours],
    ["finding", "Finding", "text", (job) => job.finding],
    ["step_ms", "Step", "ms", (job) => job.step_ms],
    ["hosts", "Hosts", "count", (job) => job.hosts],
    ["recordings", "Recordings", "count", (job) => job.recordings],
    ["fix", "First fix", "text", (job) => plain(job.fix), true],
    ["framework", "Framework", "text", (job) => job.framework, true],
    ["newest", "Newest", "text", (job) => job.newest, true],
  ]);
}

export function hostColumns(hosts: readonly FleetHost[]): Column[] {
  return columnsOf(hosts, [
    ["host", "Host", "name", (host) => host.host],
    ["slow_in", "Slow in", "count", (host) => host.slow_in],
    ["recordings", "of recordings", "count", (host) => host.recordings],
    ["jobs", "Jobs", "count", (host) => host.jobs],
    ["slow_fraction", "Slower", "percent", (host) => host.slow_fraction],
    ["last_fraction", "Last", "percent", (host) => host.last_fraction],
    ["sure", "At least slow in", "percent", (host) => host.sure],
    ["evidence", "Worst recording", "text", (host) => plain(host.evidence)],
  ]);
}

export function workColumns(rows: readonly FleetWork[]): Column[] {
  return columnsOf(rows, [
    ["name", "Name", "name", (row) => row.name],
    ["where", "Where", "text", (row) => row.where],
    ["fraction", "Share", "percent", (row) => row.fraction],
    ["total_ms", "Time", "ms", (row) => row.total_ms],
    ["count", "Runs", "count", (row) => row.count],
    ["jobs", "Jobs", "count", (row) => row.jobs],
  ]);
}

export function fileColumns(rows: readonly FleetFile[]): Column[] {
  return columnsOf(rows, [
    ["reason", "Reason", "name", (row) => row.reason],
    ["job", "Job", "text", (row) => row.job],
    ["host", "Host", "text", (row) => row.host],
    ["path", "Path", "text", (row) => row.path, true],
  ]);
}

export function causeColumns(report: Fleet): Column[] {
  return columnsOf(report.causes, [
    ["finding", "Finding", "text", (row) => row.finding],
    ["lost_devices", "Devices lost", "short", (row) => row.lost_devices],
    ["lost_device_hours", "Hours lost", "short", (row) => row.lost_device_hours],
    ["jobs", "Jobs", "count", (row) => row.jobs],
    ["job", "Most in", "name", (row) => row.job],
    ["fix", "First fix", "text", (row) => plain(row.fix)],
  ]);
}

export function communicationColumns(report: Fleet): Column[] {
  return columnsOf(report.communication, [
    ["devices", "Devices from", "count", (row) => row.devices],
    ["exposed_fraction", "Exposed", "percent", (row) => row.exposed_fraction],
    ["most_fraction", "Most", "percent", (row) => row.most_fraction],
    ["job", "Most in", "name", (row) => row.job],
    ["hidden_ms", "Hidden per step", "ms", (row) => row.hidden_ms],
    ["jobs", "Jobs", "count", (row) => row.jobs],
  ]);
}

export function memoryColumns(report: Fleet): Column[] {
  return columnsOf(report.memory, [
    ["job", "Job", "name", (row) => row.job],
    ["host", "Host", "text", (row) => row.host],
    ["allocator", "Allocator", "text", (row) => row.allocator],
    ["fraction", "Of limit", "percent", (row) => row.fraction],
    ["peak_bytes", "Peak", "bytes", (row) => row.peak_bytes],
    ["limit_bytes", "Limit", "bytes", (row) => row.limit_bytes],
    ["growth_bytes_per_step", "Growth per step", "bytes", (row) => row.growth_bytes_per_step],
  ]);
}

/** Text without the marks of code, for cells. */
function plain(text: string | null): string | null {
  return text?.replaceAll("`", "") ?? null;
}
