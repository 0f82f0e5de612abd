/** Titles of the pages, and the question that each answers. */
import type { Page } from "./route";

export const TITLES: Record<Page, string> = {
  overview: "Overview",
  timeline: "Timeline",
  steps: "Steps",
  ops: "Ops",
  kernels: "Kernels",
  input: "Input",
  memory: "Memory",
  scopes: "Scopes",
  model: "Model",
  devices: "Devices",
  functions: "Functions",
  inference: "Inference",
  health: "Health",
  compare: "Compare",
  curves: "Curves",
};

/** The question that a page answers. */
export const ABOUT: Record<Page, string> = {
  overview: "Why is the step slow?",
  timeline: "What ran when?",
  steps: "How long did each step take?",
  ops: "Which ops does the time go to?",
  kernels: "What ran on the GPUs, and how well?",
  input: "Where do batches come from, and what slows them down?",
  memory: "What uses the memory?",
  scopes: "Which layers and modules take the time?",
  model: "What is the model made of, and what does each part cost?",
  devices: "How busy were the devices?",
  functions: "Was anything retraced or recompiled?",
  inference: "How long do requests take?",
  health: "Is this recording reliable?",
  compare: "What changed between two recordings?",
  curves: "How did runs go: loss, metrics, speed?",
};
