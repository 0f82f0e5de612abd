import { expect, test } from "vitest";
import { displayNames } from "./names";

const add =
  "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)";
const mul = add.replaceAll("CUDAFunctor_add", "MulFunctor");
const half = add.replaceAll("<float>", "<c10::Half>");

test("kernels of one function show what tells them apart", () => {
  const shown = displayNames([add, mul, half]);
  expect([add, mul, half].map((name) => shown.get(name))).toEqual([
    "vectorized_elementwise_kernel<…, CUDAFunctor_add<float>, …>",
    "vectorized_elementwise_kernel<…, MulFunctor<float>, …>",
    "vectorized_elementwise_kernel<…, CUDAFunctor_add<Half>, …>",
  ]);
  const tiles = ["6, 7, 3, 3, 5", "5, 5, 3, 3, 3"].map((tile) => `void wgrad<float, 128, ${tile}, false>(int)`);
  expect([...displayNames(tiles).values()], "numbers keep their places").toEqual([
    "wgrad<…, 6, 7, …, 5, …>",
    "wgrad<…, 5, 5, …, 3, …>",
  ]);
});

test("plain names stay, and different names never look the same", () => {
  expect(displayNames(["ampere_sgemm_128x64_tn", "model/dense/MatMul"]).size).toBe(0);
  const scopes = [
    "ProfilerStep/enumerate(DataLoader)#_Iter.__next__",
    "ProfilerStep/enumerate(DataLoader)#_Iter.__next__/aten::to",
    "jit(f)/jit(main)/add",
    "aten::copy_",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
  ];
  expect(displayNames(scopes).size, "ops and paths of scopes").toBe(0);
  const twins = ["void ns::f<1>(int)", "void other::f<1>(int)", "f<1>"];
  const shown = displayNames(twins);
  const texts = twins.map((name) => shown.get(name) ?? name);
  expect(new Set(texts).size).toBe(3);
});

test("a kernel alone of its kind is named by its function and functor", () => {
  expect(
    displayNames([
      "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x4_nn_align4>(cutlass_80_tensorop_s1688gemm_128x64_16x4_nn_align4::Params)",
    ])
      .values()
      .next().value,
  ).toBe("Kernel<cutlass_80_tensorop_s1688gemm_128x64_16x4_nn_align4>");
});

test("functions around lambdas keep their names", () => {
  const clamp =
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int)";
  expect(displayNames([clamp]).get(clamp)).toBe(
    "vectorized_elementwise_kernel<4, launch_clamp_scalar{lambda#1}{lambda#7}{lambda#1}, Array<char*, 2>>",
  );
  expect(displayNames(["f(a<b", "g<<<<<", ")<>(", "h<".repeat(5000)]).size, "broken names are no error").toBeLessThan(
    5,
  );
});
