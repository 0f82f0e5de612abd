/** What the pages are called, and what each answers. */
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
};

/** What a page answers, in a few words. */
export const ABOUT: Record<Page, string> = {
  overview: "Why is the step slow?",
  timeline: "What ran when?",
  steps: "How long did each step take?",
  ops: "Which ops does the time go to?",
  kernels: "What ran on the GPUs, and how well?",
  input: "Where do batches come from, and what holds them up?",
  memory: "What fills the memory?",
  scopes: "Which layers and modules cost the time?",
  model: "What is the model made of, and what does each part cost?",
  devices: "How busy were the devices?",
  functions: "Was anything traced or compiled again?",
  inference: "How long do requests take?",
  health: "Can this recording be trusted?",
  compare: "What changed between two recordings?",
};
