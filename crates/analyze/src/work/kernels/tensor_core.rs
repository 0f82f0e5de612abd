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
    if name.contains("ffma") || (is_full_f32(&name) && is_attention_or_product(&name)) {
        return Some(false);
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
    let named = || DOES_WITHOUT.iter().any(|part| lower.contains(part));
    uses_tensor_cores(name) == Some(false)
        && (named() || (is_full_f32(&lower) && is_attention_or_product(&lower)))
}

/// Parts of names of types that matrix units take.
const NARROW: &[&str] =
    &["f16", "fp16", "half", "bfloat", "tf32", "fp8", "e4m3", "e5m2", "i8", "int8", "16816", "1688", "884"];

/// Whether its types are float32 throughout, by whole words: `fmha_cutlassF_f32_aligned`, `gemm_f32f32_f32f32_f32`.
fn is_full_f32(lower: &str) -> bool {
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_f32 = |word: &str| matches!(word, "fp32" | "float32") || word.replace("f32", "").is_empty();
    words.any(is_f32) && !NARROW.iter().any(|part| lower.contains(part))
}

fn is_attention_or_product(lower: &str) -> bool {
    ["fmha", "attention", "flash"].iter().any(|part| lower.contains(part)) || may_be_product(lower)
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
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
            "sm90_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_execute_kernel",
        ] {
            assert_eq!(uses_tensor_cores(name), Some(false), "{name}");
        }
        for (name, without) in [
            ("fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::Params)", true),
            ("my_attention_fp32_kernel", true),
            ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", false),
            ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_tensor16x8x8_execute_kernel", false),
            ("add_f32_kernel", false),
        ] {
            assert_eq!(is_product_without(name), without, "{name}");
        }
        for name in ["gemm_fusion_dot_general_1", "implicit_convolve_something", "triton_tem_fused_mm_3"] {
            assert_eq!(uses_tensor_cores(name), None, "{name}");
        }
    }
}
