//! Do both sides run the same program?
//!
//! A fix makes ops faster, removes some, or replaces some by others; the rest of the model stays. Two programs share only what
//! every program of their framework has. The question is therefore which *work* each side does, whatever it takes: the layer
//! and the type of an op (a fused or a vendor's version of it is the same work), or the family of a kernel. Copies and
//! collectives say nothing about the model.
//!
//! A large part in common means one program. So does a side that is almost completely part of the other, as often per step: the
//! other one does something else besides. If a compiler made up the names of one side only, the names cannot answer the
//! question, and it stays open.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_analyze::vocabulary::{
    Framework, is_convolution, is_generated, is_product, may_be_convolution, may_be_product, words,
};
use stepscope_analyze::work::ops::COLLECTIVE;

use super::comparable::native;
use super::side::{ComparedRun, OpTime};

/// Sides with less of their work in common run different programs. Measured over pairs of recordings: fixes that replace most
/// of the ops, such as a loop by one vectorised op, leave 0.32 and more; unrelated models share 0.29 and less.
const ANOTHER_PROGRAM: f64 = 0.30;
/// With less in common, the program changed noticeably.
const CHANGED_PROGRAM: f64 = 0.60;
/// A side is part of the other if the other does this share of its work as often per step.
const PART_OF: f64 = 0.70;
/// Fewer kinds of work are part of many programs by chance.
const LEAST_KINDS: usize = 6;
/// Counts per step that differ by less are the same: warm-up steps and the ends of recordings cut some off.
const SAME_COUNT: f64 = 0.1;
/// From this share of the time on, convolutions make the model what it is. No fix removes all of them.
const MADE_OF: f64 = 0.25;
/// If a compiler named this share of the time, what a side does not show may hide there …
const MAY_HIDE: f64 = 0.50;
/// … and from this share on, names may differ because of the compiler alone …
const COMPILED: f64 = 0.20;
/// … if the other side has less than this.
const NOT_COMPILED: f64 = 0.05;
/// Ops that are named for each side.
const NAMED: usize = 3;

/// Parts of an op's path that frameworks add for control flow, gradients and calls of functions.
const STRUCTURE: &[&str] = &[
    "map",
    "while",
    "body",
    "cond",
    "then",
    "else",
    "branch",
    "loop",
    "gradients",
    "gradient_tape",
    "replica",
    "statefulpartitionedcall",
    "partitionedcall",
];

/// How alike the work of both sides is.
#[derive(Clone, Debug, PartialEq)]
pub struct Likeness {
    /// The share of all kinds of work that both sides do, 0 to 1.
    pub common: f64,
    /// What only BASE does.
    pub base: OwnWork,
    /// What only NEW does.
    pub new: OwnWork,
    /// Whether one side convolves and the other does not at all.
    pub convolves: bool,
}

/// The work that only one side does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnWork {
    /// Its share of the side's op time, 0 to 1.
    pub share: f64,
    /// The largest, with their shares.
    pub largest: Vec<(String, f64)>,
}

impl Likeness {
    /// Are these different programs?
    pub fn is_another(&self) -> bool {
        self.convolves || self.common < ANOTHER_PROGRAM
    }

    /// Did the program change noticeably?
    pub fn is_changed(&self) -> bool {
        self.is_another() || self.common < CHANGED_PROGRAM
    }
}

/// What the ops of both sides say about their programs.
#[derive(Clone, Debug, PartialEq)]
pub enum Programs {
    /// A side has no ops.
    Unknown,
    /// A compiler made up the names of one side only.
    CompiledOnOneSide,
    /// They can be compared.
    Known(Likeness),
}

impl Programs {
    /// Compares the work of both sides.
    pub fn of(base: &[ComparedRun], new: &[ComparedRun]) -> Self {
        let layers = [base, new].iter().all(|side| has_layers(side));
        let [base, new] = [base, new].map(|side| Side::of(side, layers));
        if base.works.is_empty() || new.works.is_empty() {
            return Programs::Unknown;
        }
        let convolves = base.lacks_convolutions_of(&new) || new.lacks_convolutions_of(&base);
        let common = in_common(&base, &new);
        let likeness =
            Likeness { common, convolves, base: base.own_beside(&new), new: new.own_beside(&base) };
        let compiled = base.is_compiled_beside(&new) || new.is_compiled_beside(&base);
        if compiled && !convolves && likeness.is_another() {
            return Programs::CompiledOnOneSide;
        }
        Programs::Known(likeness)
    }

    /// The share of the work that both sides do; `None` where it is not known.
    pub fn similarity(&self) -> Option<f64> {
        match self {
            Programs::Known(likeness) => Some(likeness.common),
            _ => None,
        }
    }
}

/// One kind of work: where, in which layer, what.
type Work = (bool, String, String);

/// The work of a side.
#[derive(Default)]
struct Side {
    /// Milliseconds and number per step of each.
    works: BTreeMap<Work, (f64, f64)>,
    /// The share of the time of convolutions.
    convolutions: f64,
    /// Whether anything may be a convolution.
    may_convolve: bool,
    /// The share of the time whose names a compiler made up.
    generated: f64,
    /// The framework, where it shows.
    framework: Option<Framework>,
}

impl Side {
    fn of(runs: &[ComparedRun], layers: bool) -> Self {
        let ops = || runs.iter().flat_map(|run| &run.ops).filter(|op| tells_of_model(op));
        let with_ops = runs.iter().filter(|run| !run.ops.is_empty()).count().max(1) as f64;
        let framework = runs.first().and_then(|run| run.setting.framework).map(native);
        let mut side = Side { framework, ..Side::default() };
        for op in ops() {
            let (ms, count) = side.works.entry(work(op, layers)).or_default();
            *ms += op.ms_per_step;
            *count += op.count_per_step / with_ops;
            side.may_convolve |= may_be_convolution(meaning(op));
        }
        // With devices, the host only launches: what the program is made of runs there.
        let on_device = ops().any(|op| op.on_device);
        let main = || ops().filter(|op| op.on_device == on_device);
        let total: f64 = main().map(|op| op.ms_per_step).sum();
        let share = |of: &dyn Fn(&OpTime) -> bool| {
            main().filter(|op| of(op)).map(|op| op.ms_per_step).sum::<f64>() / total.max(f64::MIN_POSITIVE)
        };
        side.convolutions = share(&|op| is_convolution(meaning(op)));
        side.generated = share(&|op| is_generated(&op.name, &op.op_type) && !is_product(&op.name));
        side
    }

    /// May this be the other side, compiled? A graph hides the framework, but it never shows another one.
    fn is_compiled_beside(&self, other: &Side) -> bool {
        let same_framework = self.framework.is_none() || self.framework == other.framework;
        same_framework && self.generated >= COMPILED && other.generated < NOT_COMPILED
    }

    /// Is the other side made of convolutions while this one has none?
    fn lacks_convolutions_of(&self, other: &Side) -> bool {
        other.convolutions >= MADE_OF && !self.may_convolve && self.generated < MAY_HIDE
    }

    /// What the other side does not do.
    fn own_beside(&self, other: &Side) -> OwnWork {
        let total: f64 = self.works.values().map(|(ms, _)| ms).sum();
        let share = |ms: f64| ms / total.max(f64::MIN_POSITIVE);
        let mut own: BTreeMap<&str, f64> = BTreeMap::new();
        for (work, (ms, _)) in self.works.iter().filter(|(work, _)| !other.works.contains_key(*work)) {
            *own.entry(&work.2).or_default() += ms;
        }
        let whole = share(own.values().sum());
        let mut largest: Vec<(String, f64)> =
            own.into_iter().map(|(what, ms)| (what.to_owned(), share(ms))).collect();
        largest.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        largest.truncate(NAMED);
        OwnWork { share: whole, largest }
    }
}

/// The share of all work that both sides do. If one side is part of the other, that share of it.
fn in_common(base: &Side, new: &Side) -> f64 {
    let all: BTreeSet<&Work> = base.works.keys().chain(new.works.keys()).collect();
    let as_often =
        |(_, old): &(f64, f64), (_, now): &(f64, f64)| (old - now).abs() <= SAME_COUNT * old.max(*now);
    let (mut both, mut equal) = (0_usize, 0_usize);
    for (work, old) in &base.works {
        let Some(now) = new.works.get(work) else { continue };
        let equals = as_often(old, now);
        // Every compiled program has a fusion of this name: only the same number of them says something.
        both += usize::from(equals || !is_generated(&work.2, &work.2));
        equal += usize::from(equals);
    }
    let common = both as f64 / all.len().max(1) as f64;
    let smaller = base.works.len().min(new.works.len());
    let part = equal as f64 / smaller.max(1) as f64;
    if smaller >= LEAST_KINDS && part >= PART_OF { common.max(part) } else { common }
}

/// Copies and collectives depend on the machines.
fn tells_of_model(op: &OpTime) -> bool {
    let copy = words(&op.op_type).iter().any(|word| matches!(word.as_str(), "memcpy" | "memset"));
    !copy && op.op_type != COLLECTIVE
}

/// What says what an op does: its type, or the name of a kernel.
fn meaning(op: &OpTime) -> &str {
    if op.op_type == "kernel" { &op.name } else { &op.op_type }
}

fn work(op: &OpTime, layers: bool) -> Work {
    let what = if op.op_type != "kernel" && !is_generated(&op.name, &op.op_type) {
        plain_type(&op.op_type)
    } else if op.op_type != "kernel" {
        &op.name
    } else if may_be_convolution(&op.name) {
        "convolution kernel"
    } else if is_product(&op.name) || may_be_product(&op.name) {
        "matrix product kernel"
    } else {
        &op.name
    };
    (op.on_device, if layers { layer(&op.name) } else { String::new() }, what.to_owned())
}

/// The type without marks of a fused version or of a vendor's library.
pub(crate) fn plain_type(op_type: &str) -> &str {
    let mut plain = op_type.trim_start_matches('_');
    for mark in ["Mkl", "Native", "Fused"] {
        plain = plain.strip_prefix(mark).filter(|rest| !rest.is_empty()).unwrap_or(plain);
    }
    plain
}

/// The layer in an op's path. Parts that start with a capital letter are ops.
pub(crate) fn layer(name: &str) -> String {
    let Some((path, _)) = name.rsplit_once('/') else { return String::new() };
    let names_layer = |part: &&str| {
        let bare =
            part.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').to_ascii_lowercase();
        let operator =
            part.starts_with(|c: char| c.is_ascii_uppercase() || c == '_') || part.ends_with("_grad");
        !operator && !STRUCTURE.contains(&bare.as_str())
    };
    path.split('/').filter(names_layer).collect::<Vec<_>>().join("/")
}

/// Do the names of a side's ops say in which layers they are? Ops that run one by one have no such names.
fn has_layers(runs: &[ComparedRun]) -> bool {
    let ops = || runs.iter().flat_map(|run| &run.ops).filter(|op| tells_of_model(op));
    // A fifth: optimizers, losses and metrics often stand outside of the layers.
    5 * ops().filter(|op| !layer(&op.name).is_empty()).count() >= ops().count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(ops: &[(&str, &str, f64, f64)]) -> Vec<ComparedRun> {
        let op = |&(name, op_type, ms_per_step, count_per_step): &(&str, &str, f64, f64)| OpTime {
            name: name.to_owned(),
            op_type: op_type.to_owned(),
            on_device: op_type == "kernel",
            ms_per_step,
            count_per_step,
        };
        vec![ComparedRun { ops: ops.iter().map(op).collect(), ..ComparedRun::default() }]
    }

    fn likeness(base: &[ComparedRun], new: &[ComparedRun]) -> Likeness {
        match Programs::of(base, new) {
            Programs::Known(likeness) => likeness,
            other => panic!("{other:?}"),
        }
    }

    const TRAINING: &[(&str, &str, f64, f64)] = &[
        ("aten::add_", "aten::add_", 2.0, 160.0),
        ("aten::mul_", "aten::mul_", 2.0, 160.0),
        ("aten::zero_", "aten::zero_", 1.0, 160.0),
        ("aten::empty", "aten::empty", 1.0, 300.0),
    ];

    fn with(own: &[(&'static str, &'static str, f64, f64)]) -> Vec<ComparedRun> {
        side(&[TRAINING, own].concat())
    }

    fn image_model() -> Vec<ComparedRun> {
        with(&[
            ("aten::cudnn_convolution", "aten::cudnn_convolution", 30.0, 53.0),
            ("aten::cudnn_batch_norm", "aten::cudnn_batch_norm", 8.0, 53.0),
            ("aten::max_pool2d", "aten::max_pool2d", 2.0, 1.0),
            ("aten::relu", "aten::relu", 4.0, 49.0),
            ("aten::addmm", "aten::addmm", 1.0, 1.0),
        ])
    }

    fn text_model() -> Vec<ComparedRun> {
        with(&[
            ("aten::addmm", "aten::addmm", 30.0, 26.0),
            ("aten::native_layer_norm", "aten::native_layer_norm", 5.0, 10.0),
            ("aten::_flash_attention_forward", "aten::_flash_attention_forward", 6.0, 4.0),
            ("aten::gelu", "aten::gelu", 3.0, 4.0),
            ("aten::embedding", "aten::embedding", 1.0, 3.0),
        ])
    }

    #[test]
    fn a_model_without_convolutions_is_not_the_one_that_is_made_of_them() {
        let found = likeness(&image_model(), &text_model());
        assert!(found.is_another() && found.convolves, "{found:?}");
        assert_eq!(found.base.largest[0].0, "aten::cudnn_convolution");
        assert_eq!(found.new.largest[0].0, "aten::_flash_attention_forward");
        assert!(!likeness(&image_model(), &image_model()).is_changed());
    }

    #[test]
    fn two_models_of_one_framework_share_little_even_if_both_multiply_matrices() {
        let decoder = side(&[
            ("aten::mm", "aten::mm", 30.0, 96.0),
            ("rms_norm", "rms_norm", 5.0, 49.0),
            ("rotary_embedding", "rotary_embedding", 6.0, 24.0),
            ("aten::silu", "aten::silu", 3.0, 24.0),
            ("aten::topk", "aten::topk", 1.0, 1.0),
            ("aten::empty", "aten::empty", 1.0, 90.0),
        ]);
        let found = likeness(&text_model(), &decoder);
        assert!(found.is_another() && !found.convolves, "{found:?}");
    }

    #[test]
    fn what_a_fix_removes_or_replaces_leaves_the_same_program() {
        let kept = [("aten::addmm", "aten::addmm", 1.0, 2.0), ("aten::mse_loss", "aten::mse_loss", 0.1, 1.0)];
        let cells: &[_] = &[
            ("aten::lstm_cell", "aten::lstm_cell", 30.0, 100.0),
            ("aten::chunk", "aten::chunk", 3.0, 100.0),
            ("aten::sigmoid", "aten::sigmoid", 3.0, 300.0),
        ];
        let before = with(&[&kept, cells].concat());
        let after = with(&[&kept[..], &[("aten::lstm", "aten::lstm", 9.0, 1.0)]].concat());
        assert!(!likeness(&before, &after).is_another());
        // Summaries of all weights in each step, removed: most ops go with them.
        let names: Vec<String> = (0..40).map(|i| format!("histogram{i}")).collect();
        let written: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str(), 3.0, 1.0)).collect();
        let writes = side(&[TRAINING, &kept, &written].concat());
        let found = likeness(&writes, &with(&kept));
        assert!(!found.is_changed(), "all of it is part of what was there before: {found:?}");
        assert_eq!(found.new.largest, []);
    }

    #[test]
    fn layers_tell_models_apart_and_control_flow_is_no_layer() {
        let layers = |names: [&str; 3]| {
            let ops: Vec<String> = names.iter().map(|name| format!("model/{name}/MatMul")).collect();
            side(&ops.iter().map(|name| (name.as_str(), "MatMul", 1.0, 1.0)).collect::<Vec<_>>())
        };
        let encoder = layers(["encoder", "attention", "classifier"]);
        assert!(likeness(&encoder, &layers(["stem", "block", "head"])).is_another());
        assert!(!likeness(&encoder, &encoder).is_changed());
        let looped = side(&[
            ("map/while/body/_1/map/while/MatVec/MatMul", "MatMul", 5.0, 100.0),
            ("map/while/gradients/map/while/Tanh_grad/TanhGrad", "TanhGrad", 5.0, 100.0),
            ("map/while/body/_1/map/while/TensorListSetItem", "TensorListSetItem", 5.0, 100.0),
        ]);
        let vectorised = side(&[
            ("gradient_tape/MatMul/MatMul", "_MklMatMul", 1.0, 1.0),
            ("TanhGrad", "TanhGrad", 1.0, 1.0),
        ]);
        assert!(!likeness(&looped, &vectorised).is_another());
    }

    #[test]
    fn compiled_code_on_one_side_leaves_the_question_open() {
        let eager = side(&[
            ("ampere_sgemm_128x64_tn", "kernel", 8.0, 85.0),
            ("at::native::elementwise_kernel", "kernel", 3.0, 300.0),
            ("at::native::reduce_kernel", "kernel", 1.0, 50.0),
        ]);
        let graph = side(&[("CUDA graph 4", "kernel", 9.0, 1.0)]);
        assert_eq!(Programs::of(&eager, &graph), Programs::CompiledOnOneSide);
        assert_eq!(Programs::of(&graph, &eager).similarity(), None);
        let mut jax = graph;
        jax[0].setting.framework = Some(Framework::Jax);
        assert!(likeness(&eager, &jax).is_another(), "something else than what the other framework compiles");
        assert_eq!(Programs::of(&eager, &side(&[])), Programs::Unknown);
        let other_gpu = side(&[
            ("sm90_xmma_gemm_f32", "kernel", 3.0, 85.0),
            ("at::native::elementwise_kernel", "kernel", 2.0, 300.0),
            ("at::native::reduce_kernel", "kernel", 1.0, 50.0),
        ]);
        assert!(!likeness(&eager, &other_gpu).is_changed(), "kernels of another GPU do the same work");
    }

    #[test]
    fn copies_and_collectives_do_not_make_another_program() {
        let parallel =
            with(&[("ncclDevKernel_AllReduce", COLLECTIVE, 40.0, 5.0), ("Memcpy HtoD", "Memcpy", 40.0, 5.0)]);
        assert_eq!(likeness(&with(&[]), &parallel).common, 1.0);
    }
}
