//! C++ signatures as people call them: a kernel's name is often the whole type of a template, with parameters, casts,
//! lambdas and namespaces around the two words that tell it from others.

/// `text` without the noise of a C++ signature: `void a::f<(int)4, b::G<float>>(int, T2)` is `a::f<4, G<float>>`. What
/// is no such signature stays as it is.
pub(crate) fn plain(text: &str) -> String {
    if !text.contains("::") && !text.starts_with("void ") {
        return text.to_owned();
    }
    let named = text.replace("<unnamed>::", "").replace("(anonymous namespace)::", "");
    let Some(bare) = without_brackets(&named) else { return text.to_owned() };
    let bare = bare.replace("::operator", "").replace(" const", "").replace("void ", "");
    without_qualifiers(&bare)
}

/// Without what stands in round and square brackets; `None` where they do not pair.
fn without_brackets(text: &str) -> Option<String> {
    let (mut kept, mut open) = (String::with_capacity(text.len()), Vec::new());
    for letter in text.chars() {
        match letter {
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' => {
                open.pop().filter(|close| *close == letter)?;
            }
            _ if open.is_empty() => kept.push(letter),
            _ => {}
        }
    }
    open.is_empty().then_some(kept)
}

/// Inside a template's arguments, names without the namespaces before them.
fn without_qualifiers(text: &str) -> String {
    let (mut kept, mut depth, mut word) = (String::with_capacity(text.len()), 0_usize, String::new());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("::") {
            // Lambdas left nothing behind some of the colons.
            let named = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            if depth > 0 && named {
                word.clear();
            } else if named {
                word.push_str("::");
            }
            rest = after;
            continue;
        }
        rest = &rest[letter.len_utf8()..];
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        kept.push_str(&std::mem::take(&mut word));
        if matches!(letter, '>' | ',') {
            kept.truncate(kept.trim_end().len());
        }
        kept.push(letter);
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    kept + &word
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_tells_kernels_apart_stays() {
        let cases = [
            (
                "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, \
                 std::array<char *, (unsigned long)3>>(int, T2, T3)",
                "at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, array<char *, 3>>",
            ),
            (
                "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<\
                 at::native::<unnamed>::where_kernel_impl(at::TensorIterator &)::[lambda() (instance 1)]::operator ()() \
                 const::[lambda(bool) (instance 1)]>(at::TensorIteratorBase &)::[lambda(int) (instance 1)]>(int, T3)",
                "at::native::elementwise_kernel<128, 2, gpu_kernel_impl_nocast<where_kernel_impl>>",
            ),
            (
                "void cutlass::Kernel2<cutlass_80_simt_sgemm>(T1::Params)",
                "cutlass::Kernel2<cutlass_80_simt_sgemm>",
            ),
        ];
        for (signature, want) in cases {
            assert_eq!(plain(signature), want);
        }
    }

    #[test]
    fn what_is_no_signature_stays_as_it_is() {
        for name in
            ["ampere_sgemm_128x64_tn", "model/dense (fused)/MatMul", "a::b(int", "", "a::f]", "ü::", "::"]
        {
            let kept = plain(name);
            assert!(kept == name || kept == name.trim_end_matches(':'), "{name} became {kept}");
        }
    }
}
