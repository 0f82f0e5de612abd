import { expect, it } from "vitest";
import { distinct, shortName } from "./names";

it("numbers that no one reads are cut to what tells them apart", () => {
  expect(shortName("tf_Compute/-3294604460266012")).toEqual({ head: "tf_Compute", tail: " …6012" });
  for (const name of ["thread 25738 (python)", "stream 7"]) expect(shortName(name)).toEqual({ head: name, tail: "" });
  expect(shortName("/device:GPU:6").head).toBe("GPU 6");
});

it("hosts are called by what tells them apart", () => {
  expect(distinct(["resnet50_num_workers_0_worker0", "resnet50_num_workers_4_worker0"])).toEqual([
    "…0_worker0",
    "…4_worker0",
  ]);
  expect(distinct(["trainer-0", "trainer-1"])).toEqual(["trainer-0", "trainer-1"]);
  expect(distinct(["alone_in_the_world"])).toEqual(["alone_in_the_world"]);
  expect(distinct([])).toEqual([]);
});
