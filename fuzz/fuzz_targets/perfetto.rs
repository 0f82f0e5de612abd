//! Coverage-guided fuzzing of the target `perfetto`; its body is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stepscope_fuzz::targets::perfetto(bytes));
