//! Kernels that state no instruction, because a CUDA graph or a library started them: finds theirs by the kernel's name, else by
//! the line of source that kernels in graphs carry.

use rustc_hash::FxHashMap;
use stepscope_hlo::Module;

use super::Matched;
use super::executed::{Executed, ProgramRef, Tally, Unnamed};
use super::modules::ModuleBytes;
use crate::context::Context;

/// Instructions that kernels may belong to.
#[derive(Default)]
struct Candidates {
    /// Generated kernels are named after their instruction.
    by_kernel: FxHashMap<String, Vec<Candidate>>,
    /// Library calls by their line of source: their kernels have names of their own.
    calls_by_source: FxHashMap<String, Vec<Candidate>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    program: u64,
    op: String,
    source: String,
}

/// Adds what kernels without an instruction did to the instructions that they belong to. What fits several fits none.
pub(super) fn assign(
    context: &Context,
    found: &[ModuleBytes<'_>],
    executed: &mut Executed,
    kernels: FxHashMap<Unnamed, Tally>,
) {
    if kernels.is_empty() {
        return;
    }
    let candidates = Candidates::of(&ran(context, found, executed, &kernels));
    for ((program, kind, source), mut tally) in kernels {
        let kernel = context.trace.kind_name(kind);
        let Some((candidate, matched)) = candidates.find(kernel, program, source.as_deref()) else {
            continue;
        };
        tally.matched = matched;
        let ops = executed.ops.entry(ProgramRef::Number(candidate.program)).or_default();
        ops.entry(candidate.op.clone()).or_default().add(tally);
    }
}

/// The programs that ran, by what events refer to; all of them if no event says.
fn ran<'f, 't>(
    context: &Context,
    found: &'f [ModuleBytes<'t>],
    executed: &Executed,
    kernels: &FxHashMap<Unnamed, Tally>,
) -> Vec<&'f ModuleBytes<'t>> {
    let refers = |program: &ProgramRef, module: &ModuleBytes<'_>| match program {
        ProgramRef::Number(number) => *number == module.program_id,
        ProgramRef::Name(name) => context.trace.str(*name) == module.name,
        ProgramRef::Unknown => false,
    };
    let known = |module: &&ModuleBytes<'_>| {
        executed.ops.keys().any(|program| refers(program, module))
            || kernels.keys().any(|(program, ..)| refers(program, module))
    };
    let ran: Vec<&ModuleBytes<'_>> = found.iter().filter(known).collect();
    if ran.is_empty() { found.iter().collect() } else { ran }
}

impl Candidates {
    fn of(programs: &[&ModuleBytes<'_>]) -> Self {
        let mut found = Candidates::default();
        for bytes in programs {
            let Some(module) = Module::read(bytes.bytes) else { continue };
            for instruction in &module.instructions {
                let source = module.source(instruction).map(|source| source.to_string()).unwrap_or_default();
                let op = instruction.name.to_owned();
                let candidate = Candidate { program: bytes.program_id, op, source };
                if instruction.opcode == "custom-call" && !candidate.source.is_empty() {
                    found
                        .calls_by_source
                        .entry(candidate.source.clone())
                        .or_default()
                        .push(candidate.clone());
                }
                found.by_kernel.entry(as_kernel(instruction.name)).or_default().push(candidate);
            }
        }
        found
    }

    fn find(&self, kernel: &str, program: ProgramRef, source: Option<&str>) -> Option<(&Candidate, Matched)> {
        let of_program = |candidate: &&Candidate| match program {
            ProgramRef::Number(number) => number == candidate.program,
            _ => true,
        };
        let of_line = |candidate: &&Candidate| source.is_some_and(|source| source == candidate.source);
        let kernel = as_kernel(kernel.strip_suffix(".kd").unwrap_or(kernel));
        let named: Vec<&Candidate> =
            self.by_kernel.get(&kernel).into_iter().flatten().filter(of_program).collect();
        if let [candidate] = named[..] {
            return Some((candidate, Matched::KernelName));
        }
        let on_line: Vec<&Candidate> = named.iter().copied().filter(of_line).collect();
        if let [candidate] = on_line[..] {
            return Some((candidate, Matched::KernelName));
        }
        if !named.is_empty() {
            return None;
        }
        let calls = source.and_then(|source| self.calls_by_source.get(source));
        let calls: Vec<&Candidate> = calls.into_iter().flatten().filter(of_program).collect();
        match calls[..] {
            [candidate] => Some((candidate, Matched::SourceLine)),
            _ => None,
        }
    }
}

/// The name of the kernel that is generated for an instruction.
fn as_kernel(op: &str) -> String {
    op.replace(['.', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Candidates {
        let candidate = |program, op: &str, source: &str| Candidate {
            program,
            op: op.to_owned(),
            source: source.to_owned(),
        };
        let mut found = Candidates::default();
        let fusions = vec![candidate(1, "loop_fusion.1", "a.py:3"), candidate(2, "loop_fusion.1", "a.py:9")];
        found.by_kernel.insert("loop_fusion_1".to_owned(), fusions);
        let calls = vec![candidate(1, "cublas-gemm.7", "a.py:5")];
        found.calls_by_source.insert("a.py:5".to_owned(), calls);
        let both = vec![candidate(1, "conv.1", "a.py:6"), candidate(1, "conv.2", "a.py:6")];
        found.calls_by_source.insert("a.py:6".to_owned(), both);
        found
    }

    #[test]
    fn a_name_that_two_programs_share_is_told_by_the_line_of_source() {
        let all = candidates();
        let found = |kernel, program, source| {
            all.find(kernel, program, source).map(|(found, matched)| (found.program, matched.name()))
        };
        let unknown = ProgramRef::Unknown;
        assert_eq!(found("loop_fusion_1", unknown, None), None, "it fits two");
        assert_eq!(found("loop_fusion_1", ProgramRef::Number(2), None), Some((2, "kernel name")));
        assert_eq!(found("loop_fusion_1", unknown, Some("a.py:9")), Some((2, "kernel name")));
        assert_eq!(found("loop_fusion_1", unknown, Some("a.py:5")), None, "the name says otherwise");
        assert_eq!(found("nvjet_hsh_128x128", unknown, Some("a.py:5")), Some((1, "source line")));
        assert_eq!(found("nvjet_hsh_128x128", unknown, Some("a.py:6")), None, "two calls on one line");
        assert_eq!(found("nvjet_hsh_128x128", unknown, None), None);
    }
}
