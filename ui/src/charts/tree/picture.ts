/** What every picture of the scopes is given. */
import type { Node } from "./tree";

export interface PictureProps {
  zoom: Node;
  whole: number;
  perStep: boolean;
  onzoom: (node: Node) => void;
  /** How its values are written. */
  write?: (value: number) => string;
}
