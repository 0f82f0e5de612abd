/** What a device is, beside its id. */
import type { DeviceRow } from "../../server/types";

const KINDS = { cpu: "CPU", gpu: "GPU", tpu: "TPU", other: "device" };

/** Its model; its kind where the model is not known; nothing where the id already says it. */
export function modelOf({ id, name, kind }: Pick<DeviceRow, "id" | "name" | "kind">): string {
  if (name === "" || (id !== "" && name.startsWith(id))) return KINDS[kind];
  return id.endsWith(`:${name}`) ? "" : name;
}
