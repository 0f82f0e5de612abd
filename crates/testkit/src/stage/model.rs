//! The kernels of a model: names and durations of what one training step launches.

use super::{Kernel, Ns};

const fn kernel(torch: &'static str, xla: &'static str, op: &'static str) -> Kernel {
    Kernel { torch, xla, op, blocks: 4_096 }
}

/// A product on matrix units.
pub(crate) const GEMM: Kernel = kernel(
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn",
    "aten::mm",
);
/// A product without them.
pub(crate) const SGEMM: Kernel = kernel("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn", "aten::mm");
const EMBED: Kernel = kernel(
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(long)",
    "loop_gather_fusion",
    "aten::embedding",
);
const NORM: Kernel = kernel(
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
    "input_reduce_fusion_3",
    "aten::native_layer_norm",
);
const SOFTMAX: Kernel = kernel(
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(int)",
    "input_softmax_fusion",
    "aten::_softmax",
);
const LOSS: Kernel = kernel(
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*)",
    "input_reduce_fusion",
    "aten::nll_loss_forward",
);
const OPTIMIZER: Kernel = kernel(
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<4>>(long)",
    "loop_add_subtract_fusion",
    "aten::_fused_adamw_",
);
const CONVOLUTION: Kernel = kernel(
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage3",
    "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage3",
    "aten::cudnn_convolution",
);
const BATCH_NORM: Kernel = kernel(
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>(cudnnTensorStruct)",
    "input_reduce_fusion_7",
    "aten::cudnn_batch_norm",
);
const POOL: Kernel = kernel(
    "void at::native::(anonymous namespace)::max_pool_forward_nhwc<c10::BFloat16, int>(c10::BFloat16 const*)",
    "loop_reduce_window_fusion",
    "aten::max_pool2d_with_indices",
);
/// A collective over all ranks.
pub(crate) const ALL_REDUCE: Kernel = Kernel {
    torch: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    xla: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    op: "nccl:all_reduce",
    blocks: 24,
};
/// Kernels that leave most of a device free.
pub const LEFT: Kernel = Kernel { blocks: 20, op: "aten::bmm", ..NORM };
/// Its partner on another queue.
pub const RIGHT: Kernel = Kernel { blocks: 20, op: "aten::baddbmm", ..SOFTMAX };

/// `count` kernels that take `total` together: an embedding, layers, a loss, their backward pass, an optimizer.
/// Products of the kind `product` take three times as long as the others.
pub fn step(total: Ns, count: usize, product: Kernel) -> Vec<(Kernel, Ns)> {
    const LAYER: usize = 4;
    let pick = |index: usize| match (index, count) {
        (_, 1) => product,
        (0, 3..) => EMBED,
        (index, _) if index + 1 == count => OPTIMIZER,
        (index, 6..) if index == count / 2 => LOSS,
        (index, _) => [product, SOFTMAX, product, NORM][(index - 1) % LAYER],
    };
    let kernels: Vec<Kernel> = (0..count.max(1)).map(pick).collect();
    let weight = |kernel: &Kernel| if *kernel == product { 3 } else { 1 };
    let all: Ns = kernels.iter().map(weight).sum();
    kernels.iter().map(|kernel| (*kernel, (total * weight(kernel) / all).max(1_000))).collect()
}

/// The same for a model of images: convolutions, normalised, and a pooling.
pub(crate) fn image_step(total: Ns, count: usize) -> Vec<(Kernel, Ns)> {
    let pick = |index: usize| match index {
        0 => POOL,
        index if index + 1 == count => OPTIMIZER,
        index => [CONVOLUTION, BATCH_NORM][(index - 1) % 2],
    };
    let kernels: Vec<Kernel> = (0..count.max(3)).map(pick).collect();
    let each = (total / kernels.len() as Ns).max(1_000);
    kernels.into_iter().map(|kernel| (kernel, each)).collect()
}
