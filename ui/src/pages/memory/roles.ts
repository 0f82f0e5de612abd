/** Roles of memory: their names, their colours, and use over time as a stack of areas. Framework-free. */
import type { RolesOver } from "./calls";

const ROLES: Record<string, { title: string; color: string }> = {
  parameter: { title: "Weights", color: "#2f7fc1" },
  optimizer: { title: "Optimizer state", color: "#9a6bc4" },
  gradient: { title: "Gradients", color: "#e69f00" },
  activation: { title: "Activations", color: "#2fae8f" },
  input: { title: "Input", color: "#56b4e9" },
  temporary: { title: "Temporary", color: "#cc79a7" },
  autograd: { title: "Autograd", color: "#8f8b2b" },
  kept: { title: "Kept across steps", color: "#d55e00" },
  program: { title: "Programs", color: "#5b6b7a" },
};
const UNKNOWN = { title: "Unknown role", color: "#8a93a0" };

export const roleOf = (role: string | null): { title: string; color: string } => ROLES[role ?? ""] ?? UNKNOWN;

/** One area of the stack: its own bytes, and the height of its upper edge. */
export interface Area {
  role: string | null;
  title: string;
  color: string;
  own: number[];
  top: number[];
}

/** The areas, the lowest first. */
export function stacked(over: RolesOver): Area[] {
  let below = over.t_ns.map(() => 0);
  return over.roles.map(({ role, bytes }) => {
    const top = below.map((sum, at) => sum + (bytes[at] ?? 0));
    below = top;
    return { role, ...roleOf(role), own: bytes, top };
  });
}

/** The last point at or before a time; the first one if there is none. */
export function pointAt(times: number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
