//! What kind of work an instruction is, in the words that people group by.

use crate::collective::collective_kind;
use crate::cost::{is_elementwise, is_matmul, is_transcendental};
use crate::module::{Instruction, Module};

impl<'a> Module<'a> {
    /// The category of an instruction. Fusions that only wrap a product or a convolution are named after it: `custom fusion`
    /// would hide the most important work of a program.
    pub fn category(&self, instruction: &Instruction<'a>) -> String {
        match instruction.opcode {
            "fusion" => self.fusion_category(instruction),
            "custom-call" => custom_call_category(instruction.target()),
            "dot" | "ragged-dot" | "scaled-dot" => "matmul".to_owned(),
            "convolution" => "convolution".to_owned(),
            "transpose" | "copy" | "reshape" | "bitcast-convert" => "data formatting".to_owned(),
            "copy-start" | "copy-done" => "copy".to_owned(),
            opcode if collective_kind(opcode).is_some() => {
                collective_kind(opcode).unwrap_or_default().to_owned()
            }
            opcode if opcode.ends_with("-done") => opcode.trim_end_matches("-done").to_owned(),
            opcode if is_elementwise(opcode) || is_transcendental(opcode) => "unfused elementwise".to_owned(),
            opcode => opcode.to_owned(),
        }
    }

    fn fusion_category(&self, instruction: &Instruction<'a>) -> String {
        let inside = instruction.called.first().and_then(|&callee| self.computation(callee));
        let mut work = 0;
        let mut only = "";
        for (_, inner) in inside.into_iter().flat_map(|inside| self.instructions_of(inside)) {
            match inner.opcode {
                "dot" | "ragged-dot" | "scaled-dot" => return "matmul fusion".to_owned(),
                "convolution" => return "convolution fusion".to_owned(),
                "parameter" | "constant" | "bitcast" | "tuple" => {}
                opcode => {
                    work += 1;
                    only = opcode;
                }
            }
        }
        // XLA wraps single instructions into fusions of one.
        if work == 1 && matches!(only, "copy" | "transpose" | "reshape") {
            return "data formatting".to_owned();
        }
        match instruction.fusion_kind() {
            "kLoop" => "loop fusion",
            "kInput" => "input fusion",
            "kOutput" => "output fusion",
            _ => "custom fusion",
        }
        .to_owned()
    }

    /// Whether an instruction only surrounds others that are measured by themselves.
    pub fn is_container(&self, instruction: &Instruction<'a>) -> bool {
        matches!(instruction.opcode, "while" | "call" | "conditional")
    }
}

fn custom_call_category(target: &str) -> String {
    match target {
        _ if is_matmul(target) => "matmul".to_owned(),
        _ if target.starts_with("__cudnn$conv") => "convolution".to_owned(),
        _ if target.starts_with("__cudnn$fmha") => "attention".to_owned(),
        _ => "custom call".to_owned(),
    }
}
