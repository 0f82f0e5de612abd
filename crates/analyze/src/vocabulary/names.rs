//! Parts of op and kernel names: an op's scope and type, an HLO instruction's opcode, a kernel without its
//! template arguments, and the *stable* part of a name that stays the same between runs.

use std::borrow::Cow;

use crate::vocabulary::op_type;

/// An op's name without its type, and its type: `dense/MatMul:MatMul` is (`dense/MatMul`, `MatMul`).
///
/// JAX writes `jit(f)/scope/dot_general:` without a type; the last part of the path is one.
pub fn framework_op(text: &str) -> (&str, &str) {
    if let Some(kind) = op_type(text) {
        return (&text[..text.len() - kind.len() - 1], kind);
    }
    let name = text.strip_suffix(':').unwrap_or(text);
    let last = name.rsplit('/').next().unwrap_or(name);
    (name, without_number(last))
}

/// The opcode in an HLO instruction's name: `%fusion.12 = …` and `fusion.12` are `fusion`;
/// `multiply_add_fusion.3` is a `fusion` too.
pub fn hlo_opcode(name: &str) -> &str {
    let bare = hlo_name(name);
    let stem = bare.split('.').next().unwrap_or(bare);
    if stem.ends_with("fusion") { "fusion" } else { stem }
}

/// The instruction's own name: `%fusion.12 = f32[8] fusion(…)` is `fusion.12`.
pub(crate) fn hlo_name(name: &str) -> &str {
    let name = name.strip_prefix('%').unwrap_or(name);
    name.split_once(" = ").map_or(name, |(name, _)| name)
}

/// A name without a trailing number: `conv2d_7` and `fusion.12` lose theirs, `sha256` and `conv2d` keep it.
pub(crate) fn without_number(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem.strip_suffix(['_', '.']) {
        Some(bare) if stem.len() < name.len() && !bare.is_empty() => bare,
        _ => name,
    }
}

/// The Python function behind a concrete function: `__inference_train_step_4711` is `train_step`.
pub(crate) fn concrete_function(name: &str) -> Option<&str> {
    let starts = ["__inference_", "__forward_", "__backward_"];
    let rest = starts.iter().find_map(|start| name.strip_prefix(start))?;
    // A function that was wrapped again has the prefix of the inner one.
    let rest = starts.iter().find_map(|start| rest.strip_prefix(start)).unwrap_or(rest);
    let bare = without_number(rest);
    (bare.len() < rest.len()).then_some(bare)
}

/// A kernel's name without return type, arguments and template arguments:
/// `void at::native::f<float, 4>(int, float*)` is `at::native::f`.
pub fn kernel_short_name(name: &str) -> Cow<'_, str> {
    let name = name.strip_suffix(".kd").unwrap_or(name);
    if !name.contains(['<', '(']) {
        return Cow::Borrowed(name);
    }
    let name = name.strip_prefix("void ").unwrap_or(name);
    let (mut out, mut depth) = (String::with_capacity(name.len()), 0_usize);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        // C++ writes an anonymous namespace in its own brackets.
        if let Some(after) = rest.strip_prefix("(anonymous namespace)") {
            if depth == 0 {
                out.push_str("(anonymous)");
            }
            rest = after;
            continue;
        }
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    let out = out.trim();
    if out.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(out.to_owned()) }
}

/// A name that two runs of one program share: numbers that only count (`_7`, `.123`, `__inference_f_42`) and
/// addresses are removed, and kernels lose their arguments.
pub fn stable_name(name: &str) -> String {
    let bare = kernel_short_name(hlo_name(name));
    let bare = concrete_function(&bare).unwrap_or(&bare);
    let parts: Vec<String> = bare.split('/').map(|part| without_addresses(without_number(part))).collect();
    parts.join("/")
}

/// `<object at 0x7f12>` loses its address.
fn without_addresses(text: &str) -> String {
    let Some(at) = text.find("0x") else { return text.to_owned() };
    let (head, tail) = (&text[..at], &text[at + 2..]);
    let digits = tail.bytes().take_while(u8::is_ascii_hexdigit).count();
    // Short numbers have a meaning: flags, sizes.
    if digits < 6 {
        return text.to_owned();
    }
    format!("{head}0x…{}", without_addresses(&tail[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_fall_apart_into_name_and_type() {
        assert_eq!(framework_op("a/dense/MatMul_1:_MklMatMul"), ("a/dense/MatMul_1", "_MklMatMul"));
        assert_eq!(framework_op("jit(f)/layer/dot_general:"), ("jit(f)/layer/dot_general", "dot_general"));
        assert_eq!(framework_op("aten::mm"), ("aten::mm", "aten::mm"));
    }

    #[test]
    fn instructions_have_opcodes() {
        assert_eq!(hlo_opcode("%all-reduce.3 = f32[4] all-reduce(f32[4] %x)"), "all-reduce");
        assert_eq!(hlo_opcode("multiply_subtract_fusion.1"), "fusion");
        assert_eq!(hlo_opcode("dot"), "dot");
    }

    #[test]
    fn stable_names_survive_another_run() {
        for (name, want) in [
            ("model/conv2d_7/Relu", "model/conv2d/Relu"),
            ("model/conv2d/Relu_2", "model/conv2d/Relu"),
            ("fusion.123", "fusion"),
            ("__inference_train_step_4711", "train_step"),
            ("__inference___backward_f_12_34", "f"),
            ("void at::native::f<float, g<4>>(int, float*)", "at::native::f"),
            ("void (anonymous namespace)::k<int>(int)", "(anonymous)::k"),
            ("<Model object at 0x7f3a2b1c>", "<Model object at 0x…>"),
            ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
        ] {
            assert_eq!(stable_name(name), want, "{name}");
        }
    }

    #[test]
    fn names_of_nothing_but_brackets_stay() {
        assert_eq!(kernel_short_name("<<"), "<<");
        assert_eq!(kernel_short_name("(x)"), "(x)");
        assert_eq!(without_number("_7"), "_7");
    }
}
