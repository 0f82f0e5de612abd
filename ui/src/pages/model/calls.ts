/** What the page of the model asks the server. */
import { ask, askOnce, query } from "../../server/ask";
import type { ModelInfo, ModelView, NodeInfo, NodeLine, Variable } from "./types";

/** Which view of the model, and which part of it. */
export interface ModelWish {
  view: string;
  step?: number;
  /** Regular expressions that names must match as a whole. */
  show?: string;
  hide?: string;
  /** 1 for tfprof's mistakes corrected. */
  fix?: number;
}

export const calls = {
  info: (session: number, signal?: AbortSignal) => askOnce<ModelInfo>(session, "model", signal),
  view: (session: number, wish: ModelWish, signal?: AbortSignal) =>
    ask<ModelView>(`s/${session}/model/view${query({ ...wish })}`, signal),
  node: (session: number, wish: { name?: string; step?: number; fix?: number }, signal?: AbortSignal) =>
    ask<NodeInfo>(`s/${session}/model/node${query(wish)}`, signal),
  find: (session: number, wish: { q: string; step?: number; fix?: number }, signal?: AbortSignal) =>
    ask<{ total: number; nodes: NodeLine[] }>(`s/${session}/model/find${query(wish)}`, signal),
  variables: (session: number, signal?: AbortSignal) =>
    askOnce<{ rows: Variable[] }>(session, "model/variables", signal),
};
