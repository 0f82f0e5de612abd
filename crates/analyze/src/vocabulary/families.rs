//! Families of ops, by whole words of the type's name. Parts of words say nothing: `ResizeBilinear` is not a
//! linear layer, `convert` not a convolution and `pure_callback` not a call.

/// Dense matrix work: what models are made of. Each entry is one word, or two in a row.
const DENSE: &[&[&str]] = &[
    &["matmul"],
    &["mat", "mul"],
    &["conv"],
    &["convolution"],
    &["dot"],
    &["gemm"],
    &["einsum"],
    &["attention"],
    &["attn"],
    &["linear"],
    &["mm"],
    &["addmm"],
    &["bmm"],
    &["baddbmm"],
    &["lstm"],
    &["gru"],
    &["rnn"],
];

/// Parts of names of kernels that may be matrix products.
const PRODUCTS: &[&str] = &[
    "gemm",
    "conv",
    "matmul",
    "_mm",
    "mm_",
    "dot",
    "attention",
    "einsum",
    "fprop",
    "dgrad",
    "wgrad",
    "winograd",
    "cijk",
    "triton_tem",
];

/// Convolutions among the types of ops.
const CONVOLUTIONS: &[&[&str]] = &[&["conv"], &["convolution"]];

/// Parts of names of kernels that are convolutions.
const NAMED_CONVOLUTIONS: &[&str] =
    &["conv2d", "convol", "cudnn", "miopen", "fprop", "dgrad", "wgrad", "winograd", "im2col", "implicit"];

/// Starts of names that a compiler gave to kernels that it wrote, and of launches that replay a recorded graph.
const GENERATED: &[&str] = &["triton_", "CUDA graph", "cudaGraphLaunch", "hipGraphLaunch"];

/// Types that contain other ops, or that do not say what they compute.
const OPAQUE: &[&[&str]] = &[
    &["fusion"],
    &["call"],
    &["while"],
    &["conditional"],
    &["xla", "launch"],
    &["xla", "run"],
    &["unknown"],
    &["kernel"],
];

/// Ops that leave the compiled program for Python on the host: TensorFlow's, and JAX's of all versions.
const CALLBACKS: &[&[&str]] = &[
    &["py", "func"],
    &["py", "function"],
    &["numpy", "function"],
    &["pure", "callback"],
    &["io", "callback"],
    &["debug", "callback"],
    &["debug", "print"],
    &["python", "callback"],
    &["python", "cpu", "callback"],
    &["python", "gpu", "callback"],
    &["host", "callback"],
    &["outside", "call"],
];

/// Collectives of devices that are the host's own processor: XLA's opcodes, JAX's primitives, TensorFlow's ops.
const COLLECTIVES: &[&[&str]] = &[
    &["all", "reduce"],
    &["all", "gather"],
    &["all", "to", "all"],
    &["reduce", "scatter"],
    &["collective", "permute"],
    &["collective", "broadcast"],
    &["collective", "reduce"],
    &["collective", "gather"],
    &["collective", "bcast"],
    &["psum"],
    &["pmean"],
    &["pmax"],
    &["pmin"],
    &["ppermute"],
    &["pbroadcast"],
    &["allreduce"],
    &["allgather"],
    &["alltoall"],
    &["reducescatter"],
];

/// The words of an op's type in lower case: `Conv2DBackpropInput` is `conv`, `backprop`, `input`;
/// `aten::convolution_backward` is `aten`, `convolution`, `backward`. A version or a number of dimensions at
/// the end of a word is removed.
pub fn words(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, &byte) in bytes.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let begins = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || (!before.is_ascii_punctuation() && after.is_ascii_lowercase()));
        if begins || !byte.is_ascii_alphanumeric() {
            push(&mut words, &mut word);
        }
        if byte.is_ascii_alphanumeric() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    let whole = std::mem::take(word);
    // `conv2d`, `conv2`, `rnnv3`: everything from the first digit on only counts.
    let digit = whole.find(|c: char| c.is_ascii_digit()).unwrap_or(whole.len());
    let (head, tail) = whole.split_at(digit);
    let counts = !tail.is_empty() && tail.trim_end_matches('d').bytes().all(|byte| byte.is_ascii_digit());
    let version = !tail.ends_with('d') && head != "conv";
    let unversioned = head.strip_suffix('v').filter(|bare| version && !bare.is_empty()).unwrap_or(head);
    let bare = if counts { unversioned } else { &whole };
    if !bare.is_empty() {
        words.push(bare.to_owned());
    }
}

fn is_of(name: &str, family: &[&[&str]]) -> bool {
    let words = words(name);
    family.iter().any(|phrase| words.windows(phrase.len()).any(|window| window == *phrase))
}

/// Parts of names of kernels that are matrix products, without a word for it.
const NAMED_PRODUCTS: &[&str] = &["nvjet", "fmha", "flash", "cutlass"];

/// Whether an op or a kernel is, or may be, dense matrix work.
pub fn is_product(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_dense(name) || may_be_product(name) || NAMED_PRODUCTS.iter().any(|part| lower.contains(part))
}

/// Whether a kernel may be a matrix product, by parts of its name in lower case.
pub fn may_be_product(kernel: &str) -> bool {
    let kernel = kernel.to_ascii_lowercase();
    PRODUCTS.iter().any(|part| kernel.contains(part))
}

/// Whether an op of this type is dense matrix work.
pub fn is_dense(op_type: &str) -> bool {
    is_of(op_type, DENSE)
}

/// Whether an op of this type is a convolution.
pub fn is_convolution(op_type: &str) -> bool {
    is_of(op_type, CONVOLUTIONS)
}

/// Whether a kernel may be a convolution, by parts of its name.
pub fn may_be_convolution(kernel: &str) -> bool {
    let lower = kernel.to_ascii_lowercase();
    is_convolution(kernel) || NAMED_CONVOLUTIONS.iter().any(|part| lower.contains(part))
}

/// Whether a compiler made up the name, so that it does not say which op of the program it is.
pub fn is_generated(name: &str, op_type: &str) -> bool {
    GENERATED.iter().any(|start| name.starts_with(start)) || (is_opaque(op_type) && op_type != "kernel")
}

/// Whether an op's type does not say what it computes.
pub fn is_opaque(op_type: &str) -> bool {
    is_of(op_type, OPAQUE)
}

/// Whether an op leaves the compiled program for Python on the host.
pub fn is_callback(op_type: &str) -> bool {
    is_of(op_type, CALLBACKS)
}

/// Whether an op of this type exchanges data between devices.
pub(super) fn is_exchange(op_type: &str) -> bool {
    is_of(op_type, COLLECTIVES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_apart_into_whole_words() {
        assert_eq!(words("Conv2DBackpropInput"), ["conv", "backprop", "input"]);
        assert_eq!(words("aten::convolution_backward"), ["aten", "convolution", "backward"]);
        assert_eq!(words("CudnnRNNV3"), ["cudnn", "rnn"]);
        assert_eq!(words("MergeV2Checkpoints"), ["merge", "v", "checkpoints"]);
        assert_eq!(words("ResizeBilinear"), ["resize", "bilinear"]);
        assert_eq!(words("DepthwiseConv2dNative"), ["depthwise", "conv", "native"]);
        assert_eq!(words("custom-call"), ["custom", "call"]);
        assert_eq!(words("sha256x"), ["sha256x"]);
        assert_eq!(words("é"), Vec::<String>::new());
    }

    #[test]
    fn convolutions_and_generated_names_are_known() {
        for name in
            ["Conv2D", "_MklNativeConv2DBackpropFilter", "aten::cudnn_convolution", "conv_general_dilated"]
        {
            assert!(is_convolution(name), "{name}");
        }
        assert!(!is_convolution("convert") && !is_convolution("aten::mm"));
        for name in ["sm80_xmma_fprop_implicit_gemm_f32", "ampere_scudnn_128x64_relu", "winograd_nonfused"] {
            assert!(may_be_convolution(name), "{name}");
        }
        assert!(!may_be_convolution("ampere_sgemm_128x64_tn") && !may_be_convolution("convert_kernel"));
        for (name, op_type) in
            [("triton_poi_fused_add", "kernel"), ("CUDA graph 4", "kernel"), ("loop", "fusion")]
        {
            assert!(is_generated(name, op_type), "{name}");
        }
        assert!(!is_generated("aten::mm", "aten::mm") && !is_generated("ampere_sgemm_128x64_tn", "kernel"));
    }

    #[test]
    fn families_go_by_whole_words() {
        for name in [
            "MatMul",
            "_FusedMatMul",
            "BatchMatMulV2",
            "Conv2D",
            "conv2d_transpose",
            "dot_general",
            "aten::mm",
            "aten::addmm",
            "aten::linear",
            "LSTMBlockCell",
            "CudnnRNNV3",
            "aten::_scaled_dot_product_flash_attention",
        ] {
            assert!(is_dense(name), "{name}");
        }
        for name in ["ResizeBilinear", "convert", "aten::comm", "Bilinear", "ConcatV2", "pure_callback"] {
            assert!(!is_dense(name), "{name}");
        }
        for name in ["fusion", "custom-call", "StatefulPartitionedCall", "StatelessWhile", "XlaLaunch"] {
            assert!(is_opaque(name), "{name}");
        }
        for name in [
            "pure_callback",
            "io_callback",
            "EagerPyFunc",
            "PyFuncStateless",
            "xla_ffi_python_cpu_callback",
            "debug_print",
        ] {
            assert!(is_callback(name) && !is_opaque(name), "{name}");
        }
        assert!(!is_callback("custom-call"));
        for name in ["psum.14", "all-reduce.3", "psum_scatter", "CollectiveReduceV2", "all_to_all"] {
            assert!(is_exchange(name), "{name}");
        }
        assert!(!is_exchange("reduce-window") && !is_exchange("all") && !is_exchange("scatter"));
    }
}
