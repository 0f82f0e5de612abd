//! Advice fits: it speaks the framework's language, names the user's own thing, and leaves out what is there.

use stepscope_analyze::Category;
use stepscope_analyze::absence::Absence;
use stepscope_analyze::bounding::{IdleCause, Waits};
use stepscope_analyze::collectives::{RankWaiting, Waiting};
use stepscope_analyze::counters::{KernelCounters, Waste};
use stepscope_analyze::kernels::Limiter;
use stepscope_analyze::steps::How;
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::finding::{
    Cause, CopyFacts, Loader, OpCost, Pipeline, PythonLine, Rebuilding, RebuiltFunction, TroubledKernel,
};
use stepscope_diagnose::{Finding, FindingId, Severity};

use super::{Words, words};

const FRAMEWORKS: [Framework; 5] =
    [Framework::TensorFlow, Framework::Keras, Framework::Jax, Framework::PyTorch, Framework::Unknown];

fn finding(id: FindingId, cause: Cause, framework: Framework) -> Finding {
    let mut finding = Finding::new(id, Severity::Critical, cause, framework);
    finding.claims = vec![(Category::Input, 30.0)];
    finding.about_ms = Some(30.0);
    finding.fraction = Some(0.75);
    finding.gain_ms = Some(30.0);
    finding
}

fn function(why: Rebuilding) -> RebuiltFunction {
    RebuiltFunction { name: "train_step".into(), calls: 12, traces: 12, compiles: 3, ms_per_step: 25.0, why }
}

fn op(op_type: &str) -> OpCost {
    OpCost {
        op_type: op_type.into(),
        example: Some(format!("model/{op_type}")),
        ms_per_step: 20.0,
        count_per_step: 3.0,
        devices: 1,
        share: 0.6,
        is_kernel: false,
    }
}

/// A kernel with every trouble that counters can show.
fn troubled() -> Cause {
    let mut counters = KernelCounters {
        name: "void gemm<float>(float*)".into(),
        launches: 2,
        total_ms: 4.0,
        compute: Some(0.2),
        memory: Some(0.4),
        achieved: Some(0.2),
        theoretical: Some(0.25),
        limiter: Some(Limiter::SharedMemory),
        blocks: Some(10.0),
        multiprocessors: Some(108.0),
        waves: Some(1.1),
        excess_sectors: Some(0.5),
        bank_conflicts: Some(0.3),
        spills: Some(12.0),
        stall: Some(("long_scoreboard", 0.8)),
        issue: Some(0.1),
        ..KernelCounters::default()
    };
    counters.loads.sectors_per_request = Some(32.0);
    counters.loads.bytes_per_sector = Some(4.0);
    let kernel = TroubledKernel { counters, ms: Some(2.0), winnable: Some(0.25), waste: Waste::None };
    Cause::Counters { kernels: vec![kernel.clone(), kernel], count: 2 }
}

fn copy_facts(pageable: Option<f64>) -> CopyFacts {
    CopyFacts {
        per_step: 4.0,
        pageable,
        bandwidth_in: Some(12e9),
        bandwidth_out: None,
        on_computing_streams: 1.0,
        blocking: 4.0,
        blocked_ms: 2.0,
    }
}

fn transfer(pageable: Option<f64>) -> Cause {
    let directions = vec![(Category::TransferIn, 5.0)];
    Cause::Transfer { directions, hidden_ms: 0.0, copies: Some(copy_facts(pageable)) }
}

fn idle(causes: Vec<(IdleCause, f64)>) -> Cause {
    Cause::Idle {
        busy: 0.2,
        meanwhile: vec![(Category::Python, 8.0)],
        causes,
        after_waits_ms: 4.0,
        ranges: vec![("load_layer_*".into(), 5.0)],
    }
}

fn unfused() -> Cause {
    let example = Some("void at::native::vectorized_elementwise_kernel<4, Add>(int)".into());
    Cause::Unfused { kernels_per_step: 300.0, length: 4.5, share: 0.4, winnable: 0.25, example }
}

fn serial() -> Cause {
    Cause::Serial {
        streams: vec![(7, 4.0), (13, 3.0)],
        overlap_ms: 0.0,
        winnable_ms: 2.5,
        waits: Waits::Unrecorded,
    }
}

fn waiting() -> Waiting {
    let rank =
        |name: &str, waiting_ms, last| RankWaiting { name: name.into(), waiting_ms, transfer_ms: 1.0, last };
    Waiting { ranks: vec![rank("a", 3.0, 0.1), rank("b", 0.2, 0.9)], collectives_per_step: 12.0 }
}

#[test]
fn pinned_memory_is_advised_only_where_it_may_help() {
    for framework in FRAMEWORKS {
        let told = |pageable| {
            words(&finding(FindingId::TransferBound, transfer(pageable), framework)).advice.concat()
        };
        assert!(!told(Some(0.0)).contains("pin_memory"), "{framework:?}");
        assert!(!told(Some(0.0)).contains("Copy from pinned"), "{framework:?}");
        if framework == Framework::PyTorch {
            assert!(told(Some(1.0)).contains("pin_memory") && told(None).contains("pin_memory"));
        }
    }
    let evidence =
        words(&finding(FindingId::TransferBound, transfer(Some(0.0)), Framework::PyTorch)).evidence;
    assert!(evidence.iter().any(|line| line.contains("pinned memory already")), "{evidence:?}");
    assert!(evidence.iter().any(|line| line.contains("12.0 GB/s to the device")), "{evidence:?}");
}

#[test]
fn ranks_that_mostly_wait_are_told_to_balance_first() {
    let cause = Cause::Communication { ms: 4.0, hidden_ms: 0.0, waiting: Some(waiting()) };
    let told = words(&finding(FindingId::CommunicationBound, cause, Framework::PyTorch));
    assert!(told.advice[0].starts_with("Balance"), "{told:?}");
    assert!(told.evidence.iter().any(|line| line.contains("waits 1.60 ms a step")), "{told:?}");
}

/// One of every cause, with the id that it comes with.
fn causes() -> Vec<(FindingId, Cause)> {
    let kernels =
        || Cause::Kernels { per_step: 900.0, mean_us: 6.5, launch_us: Some(11.0), replays: false, busy: 0.3 };
    let line = || PythonLine { place: "train.py:12 log".into(), ms_per_step: 12.0 };
    let rebuilt = |why| Cause::Rebuilt { functions: vec![function(why)], steps: 11 };
    let input = |loader| Cause::Input { loader, wait_ms: 30.0 };
    let copies = vec![(Category::TransferIn, 5.0), (Category::TransferOut, 1.0)];
    vec![
        (FindingId::UncoalescedAccess, troubled()),
        (FindingId::SharedMemoryLimited, troubled()),
        (FindingId::LowOccupancy, troubled()),
        (FindingId::KernelStalls, troubled()),
        (FindingId::TruncatedTrace, Cause::Damage { what: "a tag".into(), offset: Some(1_234) }),
        (FindingId::TruncatedTrace, Cause::Dropped { count: 9_000 }),
        (
            FindingId::NoDeviceTrace,
            Cause::DeviceMissing {
                absence: Absence::Unseen,
                complaints: vec!["Failed to load libcupti".into()],
            },
        ),
        (FindingId::NoSteps, Cause::NothingRepeats),
        (FindingId::StartupProfiled, Cause::Startup { steps: 2, steady: 0, share: 0.9 }),
        (FindingId::TooFewSteps, Cause::FewSteps { count: 1, how: How::Marker("train".into()) }),
        (FindingId::OverheadDistorts, Cause::Overhead { events_per_ms: 900.0, python_frames: 0.9 }),
        (FindingId::InputBound, input(Loader::Unknown)),
        (FindingId::InputBound, input(Loader::Python(vec![line()]))),
        (FindingId::ComputeBound, Cause::Compute { top: vec![op("MatMul")], on_device: true }),
        (FindingId::OpDominates, Cause::Op(op("ConcatV2"))),
        (FindingId::Retracing, rebuilt(Rebuilding::ArgumentsVary)),
        (FindingId::Recompilation, rebuilt(Rebuilding::Unknown)),
        (
            FindingId::EagerDispatch,
            Cause::Eager {
                ops_per_step: 1_800.0,
                us_per_op: 14.0,
                beside: None,
                updates_per_step: 0.0,
                types: vec![("Tanh".to_owned(), 600.0)],
            },
        ),
        (FindingId::DispatchBound, Cause::Dispatch { ms: 3.0, ops_per_step: 40.0 }),
        (FindingId::HostPython, Cause::Python { lines: vec![line()] }),
        (FindingId::HostPython, Cause::Python { lines: Vec::new() }),
        (FindingId::OutputBound, Cause::Output { ops: vec![op("SaveV2")] }),
        (
            FindingId::HostCallback,
            Cause::Callback {
                op: "pure_callback".to_owned(),
                function: Some("train.py:61 slow".to_owned()),
                calls_per_step: 1.0,
                ms: 30.0,
            },
        ),
        (FindingId::SetupInLoop, Cause::SetUp { iterators_per_step: 2.0, ms: 30.0 }),
        (FindingId::KernelLaunchBound, kernels()),
        (FindingId::SmallKernels, kernels()),
        (FindingId::DeviceIdle, idle(Vec::new())),
        (FindingId::DeviceIdle, idle(IdleCause::ALL.map(|cause| (cause, 2.0)).to_vec())),
        (
            FindingId::StartupProfiled,
            Cause::SettingUp { ms: 9_000.0, share: 0.8, calls: vec![("cudaFree".into(), 8_000.0)] },
        ),
        (FindingId::AllocationStall, Cause::Allocation { per_step: 6.0, ms: 4.0 }),
        (
            FindingId::PageableCopies,
            Cause::Copies { copies: copy_facts(Some(1.0)), in_ms: 0.0, after_ms: 0.0 },
        ),
        (FindingId::BlockingCopies, Cause::Copies { copies: copy_facts(None), in_ms: 2.0, after_ms: 3.0 }),
        (FindingId::UnfusedElementwise, unfused()),
        (FindingId::SerialStreams, serial()),
        (
            FindingId::Straggler,
            Cause::Latecomer { name: "a GPU 1".into(), last: 0.9, waiting_ms: 5.0, of: 2 },
        ),
        (FindingId::TransferBound, transfer(Some(0.0))),
        (FindingId::SyncStall, Cause::Sync { ms: 4.0, after_ms: 0.0 }),
        (FindingId::SyncStall, Cause::Sync { ms: 1.0, after_ms: 3.0 }),
        (FindingId::TransferBound, Cause::Transfer { directions: copies, hidden_ms: 2.0, copies: None }),
        (FindingId::CommunicationBound, Cause::Communication { ms: 4.0, hidden_ms: 1.0, waiting: None }),
        (
            FindingId::CommunicationBound,
            Cause::Communication { ms: 4.0, hidden_ms: 0.0, waiting: Some(waiting()) },
        ),
        (FindingId::Straggler, Cause::Slowest { name: "worker-3".into(), ms: 12.0, usual_ms: 10.0, of: 8 }),
        (
            FindingId::LowPrecisionUnused,
            Cause::MatrixUnits { share: 0.7, kernel: "sgemm_128x64".into(), speedup: 8.0, only_half: false },
        ),
        (
            FindingId::LowOccupancy,
            Cause::Occupancy {
                kernel: "attn".into(),
                occupancy: 0.12,
                limiter: Some("registers".into()),
                share: 0.4,
            },
        ),
        (
            FindingId::MemoryGrowth,
            Cause::Growth {
                allocator: "bfc".into(),
                bytes_per_step: 4e6,
                kept: vec![("MatMul".into(), 1.0)],
            },
        ),
        (
            FindingId::MemoryPressure,
            Cause::Pressure { allocator: "bfc".into(), peak_bytes: 39e9, capacity_bytes: 40e9 },
        ),
        (FindingId::MemoryFragmentation, Cause::Fragmentation { allocator: "bfc".into(), share: 0.6 }),
        (
            FindingId::StepVariance,
            Cause::Variance { spread: 0.5, tail: 2.0, varies: Some(Category::Input), odd: None },
        ),
        (
            FindingId::InferenceLatency,
            Cause::Latency {
                count: 20,
                p50_ms: 80.0,
                p90_ms: 90.0,
                p99_ms: 99.0,
                mostly: Some((Category::Input, 0.6)),
            },
        ),
    ]
}

#[test]
fn every_finding_has_words_in_every_language() {
    for framework in FRAMEWORKS {
        for (id, cause) in causes() {
            let said = words(&finding(id, cause, framework));
            assert!(said.summary.ends_with('.') && said.summary.contains(": "), "{}", said.summary);
            assert!(!said.evidence.is_empty() && !said.advice.is_empty(), "{id:?}");
            for sentence in said.evidence.iter().chain(&said.advice).chain([&said.summary]) {
                assert!(sentence.ends_with('.'), "{id:?}: {sentence}");
                assert!(!sentence.contains("NaN") && !sentence.contains("  "), "{id:?}: {sentence}");
                assert_eq!(sentence.matches('`').count() % 2, 0, "{id:?}: {sentence}");
            }
        }
    }
}

#[test]
fn nobody_is_told_about_another_framework() {
    let foreign: [(Framework, &[&str]); 3] = [
        (Framework::Jax, &["tf.", "torch", "Keras", "model.fit", "DataLoader"]),
        (Framework::PyTorch, &["tf.", "jax", "jnp.", "Keras", "model.fit"]),
        (Framework::TensorFlow, &["torch", "jax", "jnp.", "DataLoader"]),
    ];
    for (framework, words_of_others) in foreign {
        for (id, cause) in causes() {
            let said = words(&finding(id, cause, framework)).advice.join(" ");
            for word in words_of_others {
                assert!(!said.contains(word), "{framework:?} {id:?} {word}: {said}");
            }
        }
    }
}

fn tf_data(pipeline: Pipeline) -> String {
    let cause = Cause::Input { loader: Loader::TfData(pipeline), wait_ms: 30.0 };
    words(&finding(FindingId::InputBound, cause, Framework::TensorFlow)).advice.join("\n")
}

#[test]
fn what_is_there_is_not_recommended() {
    let map = |parallel, prefetches, caches| Pipeline {
        bounding_stage: Some("ParallelMapV2".into()),
        written_as: Some(if parallel { "ParallelMapDatasetV2" } else { "MapDataset" }.into()),
        parallel,
        prefetches,
        caches,
        ..Pipeline::default()
    };
    let plain = tf_data(map(false, false, false));
    assert!(plain.contains("ds.map(f, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"));
    assert!(plain.contains(".cache()"));
    let prefetching = tf_data(map(false, true, true));
    assert!(
        prefetching.contains("num_parallel_calls") && !prefetching.contains(".prefetch("),
        "{prefetching}"
    );
    assert!(prefetching.contains("runs empty") && !prefetching.contains(".cache()"), "{prefetching}");
    let parallel = tf_data(map(true, false, false));
    assert!(!parallel.contains("num_parallel_calls") && parallel.contains(".prefetch("), "{parallel}");
}

#[test]
fn python_inside_a_pipeline_is_named() {
    let inside = |stage: &str| Pipeline {
        bounding_stage: Some(stage.into()),
        python_inside: true,
        ..Pipeline::default()
    };
    assert!(tf_data(inside("Generator")).contains("Replace the Python generator"));
    assert!(tf_data(inside("FlatMap")).contains("Replace the Python generator"));
    let called = tf_data(inside("ParallelMapV2"));
    assert!(called.contains("tf.py_function") && called.contains("`.map(...)`"), "{called}");
    assert!(!called.contains("num_parallel_calls=tf.data.AUTOTUNE"), "{called}");
}

#[test]
fn a_loader_with_workers_is_not_told_to_have_some() {
    let said = |workers| {
        let cause = Cause::Input { loader: Loader::TorchLoader { workers, inside: None }, wait_ms: 30.0 };
        words(&finding(FindingId::InputBound, cause, Framework::PyTorch))
    };
    assert!(said(false).advice[0].contains("num_workers=4, pin_memory=True, persistent_workers=True"));
    assert!(said(true).advice[0].contains("more workers"));
}

#[test]
fn the_reason_for_building_again_decides_the_cure() {
    let said = |id, why, framework| {
        let cause = Cause::Rebuilt { functions: vec![function(why)], steps: 12 };
        words(&finding(id, cause, framework))
    };
    let varying = said(FindingId::Retracing, Rebuilding::ArgumentsVary, Framework::TensorFlow);
    assert_eq!(
        varying.summary,
        "Retracing: `train_step` is traced in 12 of 12 calls, which takes 30.0 ms of 40.0 ms (75 %); its arguments vary."
    );
    assert!(varying.advice[0].contains("train_step(x, tf.constant(n))"), "{}", varying.advice[0]);
    let recreated = said(FindingId::Retracing, Rebuilding::Recreated, Framework::TensorFlow).advice.join(" ");
    assert!(recreated.contains("outside the loop") && !recreated.contains("tf.constant"), "{recreated}");
    let jax = said(FindingId::Recompilation, Rebuilding::ArgumentsVary, Framework::Jax).advice.join(" ");
    assert!(jax.contains("pad to buckets") && jax.contains("static_argnums"), "{jax}");
}

#[test]
fn a_missing_cupti_gets_the_recorder_s_own_words_and_the_cure() {
    let said = device_missing(Absence::Unseen, &["Failed to load libcupti"], Framework::TensorFlow);
    assert!(said.evidence[1].contains("Failed to load libcupti"), "{:?}", said.evidence);
    assert!(said.advice[0].contains("LD_LIBRARY_PATH"), "{:?}", said.advice);
}

fn device_missing(absence: Absence, complaints: &[&str], framework: Framework) -> Words {
    let complaints = complaints.iter().map(|&text| text.to_owned()).collect();
    let cause = Cause::DeviceMissing { absence, complaints };
    words(&Finding::new(FindingId::NoDeviceTrace, Severity::Warning, cause, framework))
}

#[test]
fn a_missing_device_has_its_reason_and_its_cure() {
    let never = device_missing(Absence::NeverCalled, &["No CUDA events collected."], Framework::Unknown);
    assert!(never.summary.contains("did not call the device"), "{}", never.summary);
    assert!(never.evidence[1].contains("No CUDA events collected."), "{:?}", never.evidence);
    assert!(never.advice.iter().any(|line| line.contains("--trace-fork-before-exec")), "{:?}", never.advice);
    let asked = Absence::NotAsked { asked: vec!["OSRuntime".into(), "NvtxEvents".into()] };
    let asked = device_missing(asked, &[], Framework::Unknown);
    assert!(asked.evidence[0].contains("OSRuntime, NvtxEvents"), "{:?}", asked.evidence);
    assert!(asked.advice[0].contains("nsys profile --trace=cuda"), "{:?}", asked.advice);
    let nothing = device_missing(Absence::NothingStarted { calls: 23 }, &[], Framework::Unknown);
    assert!(nothing.evidence[0].contains("23 calls"), "{:?}", nothing.evidence);
    assert!(!nothing.summary.contains("at work"), "{}", nothing.summary);
    let torch = device_missing(Absence::Unknown, &[], Framework::PyTorch).advice.join(" ");
    assert!(torch.contains("ProfilerActivity.CUDA"), "{torch}");
}

#[test]
fn a_gain_is_taken_from_as_many_categories_as_it_needs() {
    let cause = Cause::Input { loader: Loader::TorchLoader { workers: false, inside: None }, wait_ms: 30.0 };
    let mut finding = finding(FindingId::InputBound, cause, Framework::PyTorch);
    let check = |finding: &Finding| words(finding).advice.pop().unwrap_or_default();
    assert!(check(&finding).contains("`input` can fall by up to 30.0 ms"), "{}", check(&finding));
    finding.claims =
        vec![(Category::TransferOut, 8.0), (Category::Python, 1.0), (Category::TransferIn, 22.0)];
    let said = check(&finding);
    assert!(said.contains("`transfer_in` and `transfer_out` together can fall by up to 30.0 ms"), "{said}");
}

#[test]
fn names_are_short_and_cannot_leave_their_quotes() {
    let name = format!("a`b\x1b{}", "x".repeat(500));
    let quoted = super::quoted(&name);
    assert!(quoted.chars().count() <= 72 && quoted.starts_with("`a'b x"), "{quoted}");
}

#[test]
fn a_kernels_promise_says_what_bounds_it() {
    let (id, cause) = (FindingId::UncoalescedAccess, troubled());
    let text = words(&finding(id, cause, Framework::Unknown));
    assert!(
        text.summary.starts_with("Uncoalesced access:") && text.summary.contains("`gemm` and 1 more"),
        "{text:?}"
    );
    assert!(text.evidence.iter().any(|fact| fact.contains("At most 25 %")), "{text:?}");
    assert!(text.advice.iter().any(|advice| advice.contains("threadIdx.x")), "{text:?}");
}
