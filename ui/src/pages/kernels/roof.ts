/** Dots and peaks of the roofline, from the hardware counters in the table of kernels. */
import type { Peaks, Work } from "../../charts/roofline";
import type { View } from "../../server/views";
import { number, text } from "../../table/view";

/** Kernels whose arithmetic and memory traffic were counted, below the device's peaks; null if one of the three is unknown. */
export function roofline(view: View): { works: Work[]; peaks: Peaks } | null {
  const rows = [...Array(view.rows).keys()];
  const highest = (key: string) => rows.reduce((most, row) => Math.max(most, number(view, key, row) ?? 0), 0);
  const [memory, flops] = [highest("peak_bytes_per_s"), highest("peak_flops_per_s")];
  const works = rows.flatMap((row): Work[] => {
    const [speed, intensity] = [number(view, "flops_per_s", row), number(view, "flops_per_byte", row)];
    return speed && intensity
      ? [{ name: text(view, "name", row), flops: speed, intensity, share: number(view, "fraction", row) ?? 0 }]
      : [];
  });
  return memory > 0 && flops > 0 && works.length > 0
    ? { works, peaks: { memory, roofs: [{ label: "FP32", flops }] } }
    : null;
}
