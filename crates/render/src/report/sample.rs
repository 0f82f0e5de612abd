//! Hand-made reports for tests.

use stepscope_analyze::Category;
use stepscope_analyze::breakdown::Shares;
use stepscope_analyze::steps::{Exclusion, How, Origin, StepKind};
use stepscope_analyze::time::summary::{DeviceRow, HostSummary, StepRow, Summary};
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::facts::{Exchanges, Loader, OpCost, Pipeline};
use stepscope_diagnose::rules::{
    communication_bound, compute_bound, input_bound, memory_growth, no_steps as unmarked,
};
use stepscope_diagnose::{Finding, Severity};
use stepscope_trace::{DeviceKind, Dur, Span, Time};

use stepscope_results::report::{HealthRow, OpRow, Report, SourceRow};

const NS_PER_US: i64 = 1_000;

/// A step with this number and start, and microseconds per category.
pub(crate) fn step(number: i64, start_us: i64, owners: &[(Category, i64)]) -> StepRow {
    let mut shares = Shares::default();
    for &(category, us) in owners {
        shares.add(category, Dur::from_us(us));
    }
    let start = Time::from_ns(start_us * NS_PER_US);
    StepRow { number, span: Span::new(start, start + shares.total()), shares, excluded: None }
}

/// A host with these steps.
pub(crate) fn host(name: &str, framework: Framework, steps: Vec<StepRow>) -> HostSummary {
    HostSummary {
        part: None,
        host: name.to_owned(),
        framework,
        origin: Origin::Marker,
        how: How::Marker("train".to_owned()),
        kind: StepKind::Training,
        whole_capture: false,
        covers: stepscope_analyze::Coverage::default(),
        steps,
        devices: vec![DeviceRow {
            id: "host".to_owned(),
            name: "CPU".to_owned(),
            kind: DeviceKind::Cpu,
            busy_fraction: Some(0.09),
            steps_seen: 12,
        }],
        bottleneck_device: None,
        asynchronous: false,
        device_unseen: false,
        hidden_communication_ms: 0.0,
        hidden_copies_ms: 0.0,
        events: 4_321,
    }
}

/// A finding with the fields that the engine would set.
pub(crate) fn settled(mut finding: Finding, fraction: f64, step_ms: f64, category: Category) -> Finding {
    finding.fraction = Some(fraction);
    finding.claims = vec![(category, fraction * step_ms)];
    finding.about_ms = Some(fraction * step_ms);
    finding.gain_ms = finding.winnable.map(|share| share * fraction * step_ms);
    finding
}

fn growth() -> Finding {
    let growth = memory_growth::Growth {
        allocator: "GPU_0_bfc".to_owned(),
        bytes_per_step: 4_194_304.0,
        kept: vec![("train_step/dense/MatMul".to_owned(), 1.0)],
        failed: false,
    };
    Finding::new(&memory_growth::RULE, Severity::Warning, growth, Framework::TensorFlow)
        .about("GPU_0_bfc".to_owned())
        .sure(0.8)
}

/// A loop that waits for a sequential map.
pub(crate) fn input_bound() -> Report {
    let mut steps: Vec<StepRow> = (0..12)
        .map(|number| {
            let input = 34_100 + (number * 7) % 5 * 400;
            let owners = [
                (Category::Input, input),
                (Category::Compute, 3_200),
                (Category::Dispatch, 900),
                (Category::Python, 600),
            ];
            step(number, number * 40_000, &owners)
        })
        .collect();
    steps[0].excluded = Some(Exclusion::Startup);
    let summary = Summary::finish(vec![host("trainer", Framework::TensorFlow, steps)]);
    let (length, waits) = (summary.length_ms(), summary.fraction(Category::Input));
    let pipeline = Pipeline {
        bottleneck_stage: Some("ParallelMapV2".to_owned()),
        written_as: Some("MapDataset:1".to_owned()),
        after: Some("TensorSlice".to_owned()),
        stage_ms: Some(34.2),
        parallelism: Some(1.0),
        ..Pipeline::default()
    };
    let cause = input_bound::InputWait {
        loader: Loader::TfData(pipeline),
        wait_ms: waits * length,
        locked_ms: None,
        long: None,
    };
    let mut input =
        Finding::new(&input_bound::RULE, Severity::Critical, cause, Framework::TensorFlow).sure(0.95);
    input.winnable = Some(1.0);
    Report {
        usage: None,
        targets: vec!["logs/".to_owned()],
        session: "2026_01_31_12_00_00".to_owned(),
        sessions: vec!["2026_01_31_12_00_00".to_owned(), "2026_01_30_09_00_00".to_owned()],
        sources: vec![SourceRow {
            path: "logs/plugins/profile/2026_01_31_12_00_00/trainer.xplane.pb".to_owned(),
            format: crate::format_named("xplane"),
            bytes: 123_456,
            host: "trainer".to_owned(),
            events: 4_321,
        }],
        health: vec![HealthRow {
            id: "short-capture",
            severity: "warning",
            message: "the capture is very short: 480 ms; fix: record at least ten steps after the warm-up"
                .to_owned(),
        }],
        summary,
        ranges: Vec::new(),
        ops: [
            ("train_step/dense/MatMul", "MatMul", 24, 21.3, 0.55),
            ("train_step/Relu", "Relu", 12, 6.1, 0.16),
        ]
        .map(|(name, op_type, count, ms, fraction)| OpRow {
            label: None,
            source: None,
            name: name.to_owned(),
            op_type: op_type.to_owned(),
            on_device: false,
            count,
            total_ms: ms * 1.1,
            self_ms: ms,
            fraction,
        })
        .to_vec(),
        gpu_samples: Vec::new(),
        profiled: None,
        run: None,
        clocks: None,
        memory: None,
        picture: None,
        findings: vec![settled(input, waits, length, Category::Input), growth()],
    }
}

/// A capture in which nothing repeats.
pub(crate) fn no_steps() -> Report {
    let mut whole =
        host("trainer", Framework::Jax, vec![step(0, 0, &[(Category::Idle, 900), (Category::Compute, 100)])]);
    whole.whole_capture = true;
    whole.origin = Origin::None;
    whole.how = How::Nothing;
    let finding = Finding::new(
        &unmarked::RULE,
        Severity::Warning,
        unmarked::NoSteps { unclear: None, ranges: Default::default() },
        Framework::Jax,
    );
    Report {
        usage: None,
        summary: Summary::finish(vec![whole]),
        findings: vec![finding],
        ops: Vec::new(),
        ..input_bound()
    }
}

/// A device that computes, with several kinds of findings.
pub(crate) fn on_device() -> Report {
    let steps = (0..40)
        .map(|number| {
            let stall = if number % 13 == 7 { 9_000 } else { 200 };
            let owners = [
                (Category::Compute, 21_000 + (number * 37) % 11 * 130),
                (Category::Communication, 4_200),
                (Category::TransferIn, 1_500),
                (Category::Launch, 2_600),
                (Category::Sync, stall),
            ];
            step(100 + number, number * 31_000, &owners)
        })
        .collect();
    let mut gpu = host("worker-0", Framework::PyTorch, steps);
    gpu.devices = vec![DeviceRow {
        id: "/device:GPU:0".to_owned(),
        name: "NVIDIA A100-SXM4-40GB".to_owned(),
        kind: DeviceKind::Gpu,
        busy_fraction: Some(0.86),
        steps_seen: 40,
    }];
    gpu.bottleneck_device = Some(0);
    let summary = Summary::finish(vec![gpu]);
    let (length, compute) = (summary.length_ms(), summary.fraction(Category::Compute));
    let op = |op_type: &str, ms_per_step: f64, share: f64| OpCost {
        origin: None,
        op_type: op_type.to_owned(),
        example: Some(format!("layer/{op_type}")),
        ms_per_step,
        count_per_step: 24.0,
        devices: 1,
        share,
        is_kernel: false,
    };
    let cause = compute_bound::Compute {
        lines: Vec::new(),
        top: vec![op("aten::addmm", 12.0, 0.55), op("aten::gelu", 3.0, 0.14)],
        on_device: true,
        precision: None,
    };
    let bound = Finding::new(&compute_bound::RULE, Severity::Info, cause, Framework::PyTorch)
        .about("aten::addmm".to_owned());
    let mut shared = Finding::new(
        &communication_bound::RULE,
        Severity::Warning,
        communication_bound::Collectives {
            ms: 4.2,
            hidden_ms: 1.4,
            waiting: None,
            one_side: None,
            missing: None,
            many: None,
            exchanges: Exchanges::default(),
            on_device: true,
        },
        Framework::PyTorch,
    );
    shared.winnable = Some(1.0);
    let part = summary.fraction(Category::Communication);
    let findings = vec![
        settled(bound, compute, length, Category::Compute),
        settled(shared, part, length, Category::Communication),
    ];
    Report { summary, findings, ..input_bound() }
}
