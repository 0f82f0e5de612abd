/** Dots and peaks of the roofline, from the costs of ops that compilers record and the data sheets of devices. */
import type { Peaks, Roof, Work } from "../../charts/roofline";
import type { DevicePeaks, View } from "../../server/views";
import { number, text } from "../../table/view";

/** Ops of devices with known operations and bytes. */
export function works(view: View): Work[] {
  return [...Array(view.rows).keys()].flatMap((row): Work[] => {
    const [flops, bytes] = [number(view, "flops_per_s", row), number(view, "bytes_per_s", row)];
    return flops && bytes
      ? [{ name: text(view, "name", row), flops, intensity: flops / bytes, share: number(view, "fraction", row) ?? 0 }]
      : [];
  });
}

/** The peaks of the first device that has any: devices of a run are alike. */
export function peaksOf(all: readonly DevicePeaks[]): Peaks | null {
  const first = all.find((one) => one.memory_bytes_per_s > 0 && (one.fp32 || one.fp16 || one.tf32));
  if (!first) return null;
  const named: [string, number | null][] = [
    ["FP16", first.fp16],
    ["TF32", first.tf32],
    ["FP32", first.fp32],
  ];
  const roofs = named.flatMap(([label, peak]): Roof[] => (peak ? [{ label, flops: peak * 1e12 }] : []));
  return { memory: first.memory_bytes_per_s, roofs: roofs.sort((a, b) => b.flops - a.flops) };
}
