/** Fetches what a finding is about, once the timeline shows its step, and goes where that can be seen. */
import type { Evidence, Proof, Span } from "../model/types";
import { fit } from "../model/view";

interface Shown {
  place: Evidence | null;
  show(window: Span): void;
  invalidate(): void;
}

/** Adds the proof of a finding to its place; `look` moves the view to where its stretches can be told apart. */
export async function prove(
  shown: Shown,
  evidence: (finding: string) => Promise<Proof>,
  place: Evidence | null,
  look: boolean,
): Promise<void> {
  if (!place?.finding) return;
  // Without the proof, the step is highlighted all the same.
  const proof = await evidence(place.finding).catch(() => null);
  const inside = proof && proof.start_ns < place.end && proof.end_ns > place.start;
  if (!proof || !inside || shown.place !== place) return;
  shown.place = { ...place, proof };
  const [start, end] = [proof.start_ns, proof.end_ns];
  if (look && end - start < 0.99 * (place.end - place.start)) shown.show(fit({ start, end }, 0.85));
  shown.invalidate();
}
