//! Op types and what they cost per step, in the shape that rules need.

use std::collections::HashMap;

use stepscope_analyze::session::Session;
use stepscope_analyze::time::summary::{DeviceRow, Summary};
use stepscope_analyze::vocabulary::{Framework, is_output_op, names_torch_op};
use stepscope_analyze::work::ops::{COLLECTIVE, OpRow, Ops, Where};
use stepscope_analyze::work::programs::Origins;
use stepscope_trace::DeviceKind;

use super::{Evidence, OpCost};

/// Over how much device work totals are.
struct DeviceSteps {
    /// Devices that worked.
    devices: usize,
    /// These devices, each as often as there are steps that count, or once where there are no steps.
    windows: usize,
}

impl DeviceSteps {
    fn of(summary: &Summary) -> Self {
        // A host without steps has nothing to add to a mean step.
        let steps = summary.hosts.iter().any(|host| !host.whole_capture);
        let hosts = summary.hosts.iter().filter(|host| !(steps && host.whole_capture));
        let (mut devices, mut windows) = (0, 0);
        for host in hosts {
            let worked = |device: &&DeviceRow| device.kind != DeviceKind::Cpu && device.steps_seen > 0;
            let working = host.devices.iter().filter(worked).count();
            devices += working;
            windows += working * if host.whole_capture { 1 } else { host.counted().count() };
        }
        DeviceSteps { devices, windows }
    }
}

/// The type of kernels that no op is known to have launched.
const KERNEL: &str = "kernel";

/// The model's op types in the steps, the costliest first.
#[derive(Clone, Debug)]
pub struct ModelOps(pub Vec<OpCost>);

impl Evidence for ModelOps {
    fn of(session: &Session) -> Self {
        let of_model =
            |row: &OpRow| !row.key.input && !is_output_op(&row.key.kind) && row.key.kind != COLLECTIVE;
        ModelOps(op_costs(session, of_model))
    }
}

/// Ops that write, the costliest first.
#[derive(Clone, Debug)]
pub struct OutputOps(pub Vec<OpCost>);

impl Evidence for OutputOps {
    fn of(session: &Session) -> Self {
        OutputOps(op_costs(session, |row| is_output_op(&row.key.kind)))
    }
}

/// Costs by type, the costliest first, each with the costliest op of that type.
fn op_costs(session: &Session, wanted: impl Fn(&OpRow) -> bool) -> Vec<OpCost> {
    let (ops, summary): (&Ops, &Summary) = (&session.ops, &session.summary);
    let origins = Origins::of(&session.programs);
    let side = ops.side();
    let by_type = ops.by_type();
    // Kernels that no op is known to have launched have no type in common but that: each goes by its own name.
    let typed = by_type.rows.iter().filter(|row| row.key.kind != KERNEL);
    let kernels = ops.rows.iter().filter(|row| row.key.kind == KERNEL);
    let mut rows: Vec<&OpRow> =
        typed.chain(kernels).filter(|row| row.key.side == side && wanted(row)).collect();
    rows.sort_by(|a, b| b.self_ms.total_cmp(&a.self_ms));
    let all: f64 = rows.iter().map(|row| row.self_ms).sum();
    // A range around ops is nothing that a model is made of.
    let torch = summary.bound().is_some_and(|host| host.framework == Framework::PyTorch);
    rows.retain(|row| !(torch && side == Where::Host) || names_torch_op(&row.key.kind));
    let work = DeviceSteps::of(summary);
    let devices = if side == Where::Device { work.devices.max(1) } else { 1 };
    let per_step = |total: f64| match side {
        Where::Device => total / work.windows.max(1) as f64,
        Where::Host => ops.window.per_step(total).unwrap_or(total),
    };
    // Rows are ranked: the first of a type costs most.
    let mut examples: HashMap<&str, &OpRow> = HashMap::new();
    for op in ops.rows.iter().filter(|op| op.key.side == side) {
        examples.entry(&op.key.kind).or_insert(op);
    }
    rows.into_iter()
        .map(|row| {
            let is_kernel = row.key.kind == KERNEL;
            let example = examples.get(row.key.kind.as_str()).filter(|_| !is_kernel);
            let named = example.map_or(row.key.name.as_str(), |op| &op.key.name);
            OpCost {
                origin: origins.find(named).map(|origin| origin.words()),
                op_type: if is_kernel { row.key.name.clone() } else { plain_type(&row.key.kind).to_owned() },
                is_kernel,
                example: example.map(|op| op.key.name.clone()).filter(|name| *name != row.key.kind),
                ms_per_step: per_step(row.self_ms),
                count_per_step: per_step(row.count as f64),
                devices,
                share: if all > 0.0 { row.self_ms / all } else { 0.0 },
            }
        })
        .collect()
}

/// The type as users know it: libraries' own variants (`_MklNativeFusedConv2D`) go by the op that they replace.
fn plain_type(kind: &str) -> &str {
    let variant = ["_MklNative", "_Mkl", "_"].iter().find_map(|prefix| kind.strip_prefix(prefix));
    variant.filter(|plain| plain.starts_with(|c: char| c.is_ascii_uppercase())).unwrap_or(kind)
}
