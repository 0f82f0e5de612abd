//! Whether a kernel uses the matrix units (tensor cores, matrix cores). Only its name shows it, and every
//! generation of libraries has new names; the rules know names up to Blackwell and CDNA 3.

use crate::vocabulary::may_be_product;

/// Parts of names of kernels that use them.
const USES: &[&str] = &[
    "hmma",
    "imma",
    "dmma",
    "qmma",
    "wmma",
    "wgmma",
    "gmma",
    "mfma",
    "utcmma",
    "tcgen05", // instructions
    "16816",
    "161616",
    "16832",
    "16864",
    "s1688",
    "h1688",
    "h884",
    "s884",
    "i8816",
    "8x8x4", // their shapes
    "tensorop",
    "nvjet",
    "sm90_xmma",
    "sm100_xmma",
    "xmma_gemm_f16",
    "xmma_gemm_bf16",
    "xmma_gemm_i8",
    "xmma_fprop_implicit_gemm_f16",
    "xmma_fprop_implicit_gemm_bf16",
    "tf32f32_tf32f32",
    "f16f16_f16f",
    "flash_fwd",
    "flash_bwd",
    "flash::",
    "fmha",
    "deep_gemm",
    "marlin",
    "bmm_bfloat16",
    "bmm_e4m3",
    "bmm_mxe",
];

/// Parts of names of matrix products that do not use them.
const DOES_WITHOUT: &[&str] = &["sgemm", "dgemm", "cgemm", "zgemm", "simt", "gemv", "ffma"];

/// `None` if the name does not say.
pub fn uses_tensor_cores(name: &str) -> Option<bool> {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if name.starts_with("cijk_") {
        // Tensile writes the shape of the matrix instruction after `MI`; `MAC` kernels have none.
        return Some(name.contains("_mi16") || name.contains("_mi32") || name.contains("_mi4x"));
    }
    if has(USES) {
        return Some(true);
    }
    if has(DOES_WITHOUT) {
        return Some(false);
    }
    if may_be_product(&name) { None } else { Some(false) }
}

/// Whether it is a matrix product without the matrix units.
pub fn is_product_without(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    uses_tensor_cores(name) == Some(false) && DOES_WITHOUT.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_seven_generations() {
        for name in [
            "volta_h884gemm_64x128_ldg8_nn",
            "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(x)",
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1",
            "nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN",
            "Cijk_Ailk_Bljk_BBS_BH_MT128x32x64_MI16x16x16x1_SN_1LDSB0",
            "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>(Flash_fwd_params)",
        ] {
            assert_eq!(uses_tensor_cores(name), Some(true), "{name}");
        }
        for name in [
            "volta_sgemm_128x64_nn",
            "ampere_sgemm_128x64_tn",
            "cutlass_80_simt_sgemm_256x128_8x4_nn_align1",
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
            "Cijk_Ailk_Bljk_SB_MT64x64x16_SN_1LDSB0",
        ] {
            assert_eq!(uses_tensor_cores(name), Some(false), "{name}");
        }
        for name in ["gemm_fusion_dot_general_1", "implicit_convolve_something", "triton_tem_fused_mm_3"] {
            assert_eq!(uses_tensor_cores(name), None, "{name}");
        }
    }
}
