//! Coverage-guided fuzzing of the target `readers`; its body is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stepscope_fuzz::targets::readers(bytes));
