//! Coverage-guided fuzzing of the target `rocprof`; its body is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stepscope_fuzz::targets::rocprof(bytes));
