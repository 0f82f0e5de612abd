//! Words for files of other profilers: what they are, and how to get a file that stepscope reads.

use stepscope_read::discover::Foreign;

/// What one such file is called, and several.
pub(crate) fn names(kind: Foreign) -> (&'static str, &'static str) {
    match kind {
        Foreign::Nvprof => ("nvprof profile", "nvprof profiles"),
        Foreign::Speedscope => ("speedscope profile", "speedscope profiles"),
        Foreign::Pprof => ("pprof profile of another program", "pprof profiles of other programs"),
        Foreign::Perf => ("perf recording", "perf recordings"),
        Foreign::CProfile => ("cProfile result", "cProfile results"),
        Foreign::V8Profile => ("V8 CPU profile", "V8 CPU profiles"),
        Foreign::FoldedStacks => ("file of folded stacks", "files of folded stacks"),
        Foreign::JavaHeap => ("Java heap dump", "Java heap dumps"),
        Foreign::V8Heap => ("V8 heap snapshot", "V8 heap snapshots"),
        Foreign::Memray => ("memray recording", "memray recordings"),
        Foreign::NativeHeap => ("heap profile of a native program", "heap profiles of native programs"),
        Foreign::CoreDump => ("core dump", "core dumps"),
        Foreign::RocprofTable => ("rocprofv3 table", "rocprofv3 tables"),
        Foreign::ExecutionTrace => ("PyTorch execution trace", "PyTorch execution traces"),
        Foreign::Chakra => ("Chakra trace", "Chakra traces"),
        Foreign::NsightStream => {
            ("unprocessed Nsight Systems recording", "unprocessed Nsight Systems recordings")
        }
    }
}

/// What to do instead.
pub(crate) fn way_out(kind: Foreign) -> &'static str {
    match kind {
        Foreign::Nvprof => {
            "nvprof is discontinued; record with Nsight Systems: `nsys profile -o report COMMAND`, then \
             `nsys export --type sqlite report.nsys-rep`"
        }
        Foreign::Speedscope | Foreign::FoldedStacks => {
            "it has sampled call stacks without times of ops; open it at https://www.speedscope.app, and record a profile \
             of the training steps for stepscope: `stepscope run -- COMMAND`"
        }
        Foreign::Pprof => {
            "open it with `go tool pprof -http=: FILE`; of pprof's files, stepscope reads JAX's device memory profiles"
        }
        Foreign::Perf => {
            "open it with `perf report -i FILE`, or samply; record ops for stepscope: `stepscope run -- COMMAND`"
        }
        Foreign::CProfile => {
            "open it with `python -m pstats FILE` or snakeviz; cProfile knows no ops: record with `stepscope run -- COMMAND`"
        }
        Foreign::V8Profile | Foreign::V8Heap => "open it in Chrome's developer tools; it is about JavaScript",
        Foreign::JavaHeap => "open it with Eclipse Memory Analyzer or VisualVM; it is about Java objects",
        Foreign::Memray => {
            "open it with `memray flamegraph FILE`; for memory of GPUs, stepscope reads the snapshots of \
             `torch.cuda.memory._dump_snapshot`"
        }
        Foreign::NativeHeap => "open it with jeprof, pprof or ms_print, depending on what wrote it",
        Foreign::CoreDump => {
            "a core dump shows where a program ended, not how long it took; open it with gdb"
        }
        Foreign::RocprofTable => {
            "record in a format with all tables in one file: `rocprofv3 --sys-trace --output-format json -- COMMAND`, or \
             `--output-format rocpd`"
        }
        Foreign::ExecutionTrace => {
            "it has the graph of ops and their shapes for replay and simulation (PARAM, Chakra), but no device times; record \
             `torch.profiler.profile(record_shapes=True)` beside it"
        }
        Foreign::Chakra => {
            "it feeds simulators (ASTRA-sim) and has no measured timeline; give the Kineto trace that it was made from"
        }
        Foreign::NsightStream => {
            "process it on the machine that recorded it: `nsys-ui` opens it, or `QdstrmImporter -i FILE` makes a .nsys-rep of it"
        }
    }
}
