//! One type of op fills the step, and it is not the dense matrix work of a model.
//!
//! # What it means
//! A step that is mostly `MatMul` or `Conv2D` is a model at work. A step that is mostly concatenation, sorting or copying
//! usually hides a mistake: a buffer that is rebuilt in a loop, a copy that a view would replace. The subject is the op
//! type.
//!
//! # How it is detected
//! The costliest op type takes at least {ONE_OP} of all op time and owns at least {SEVERE} of the step. Matrix products,
//! convolutions, attention and recurrent cells are excluded, and so are names that say nothing (`fusion`, `while`, calls),
//! by whole words of the name. Host callbacks have a finding of their own, and so have copies and single
//! elementwise operations inside compiled programs (`layout-copies`, `unfused-ops`). A fix saves at most {GAIN} of the op's time
//! and, on the host's processor, of the executor's work in proportion.
//!
//! The ops of an optimizer's update count as one, by the range that PyTorch writes around `optimizer.step()`: if the update
//! takes at least {SEVERE} of the step (and {ONE_OP} of compute, if one fused op does it), the finding names the optimizer,
//! and the promise is all of the update, with the dense gradients of embeddings that it needs.
//!
//! # How to fix it
//! Concatenation: collect the parts and join them once.
//!
//! Sort, top-k, unique: run them less often, on less data.
//!
//! Gather and scatter: fewer, denser and sorted accesses.
//!
//! Transposes, casts, copies: keep one layout and one type throughout.
//!
//! Decompositions: every few steps, or iteratively.
//!
//! An optimizer: `nn.Embedding(..., sparse=True)` with `torch.optim.SparseAdam` for large tables of which a step uses few
//! rows; `fused=True`; larger batches, which need fewer updates.
//!
//! # How to check
//! The op's row in `stepscope ops PATH`.

use stepscope_analyze::time::optimizer::Updating;
use stepscope_analyze::vocabulary::names::hlo_opcode;
use stepscope_analyze::vocabulary::{is_callback, is_dense, is_opaque};
use stepscope_analyze::work::programs::ProgramOp;
use stepscope_analyze::{Category, Shares};
use stepscope_text::{duration_ms, quoted, share};

use super::shared::ops::{cost, joined_update};
use super::shared::{of_step, severity};
use super::{layout_copies, unfused_ops};
use crate::facts::{Facts, ModelOps, OpCost};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::SEVERE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "op-dominates",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("op_dominates.rs"),
};

thresholds! {
    /// An op type with half of all op time dominates the model, whatever else the step does.
    ONE_OP: Share = 0.50;
    /// An op that should not be there can go entirely.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    update(facts).or_else(|| one_op(facts))
}

/// An optimizer's update that takes more than the rest of the model.
fn update(facts: &Facts) -> Option<Finding> {
    let updates = &facts.updates;
    let (name, ops) = (updates.name()?, facts.get::<ModelOps>());
    let mut shares = updates.shares;
    shares.add_all(&updates.dense_gradients);
    let claims = facts.owned_over(&shares, updates.steps);
    let ms_of = |shares: &Shares| shares.get(Category::Compute).ms() / updates.steps.max(1) as f64;
    let compute = ms_of(&updates.shares).min(facts.ms(Category::Compute));
    let share = compute / facts.ms(Category::Compute).max(f64::MIN_POSITIVE);
    // What one fused op does already has to be more than the model to be worth a word.
    let fused = updates.updating == Updating::Fused;
    if of_step(facts, compute) < SEVERE || (fused && share < ONE_OP) {
        return None;
    }
    let within: f64 = facts.owned_over(&updates.shares, updates.steps).iter().map(|(_, ms)| ms).sum();
    let cause = Update {
        optimizer: name.to_owned(),
        ms: within,
        share,
        dense_embedding: ms_of(&updates.dense_gradients) > 0.0 || ops.0.iter().any(is_dense_gradient),
        updating: updates.updating,
        costliest: ops.0.first().cloned(),
    };
    let finding = Finding::new(&RULE, severity(of_step(facts, within)), cause, facts.framework());
    Some(finding.about(name.to_owned()).owning(claims, Some(GAIN)).sure(0.85))
}

fn is_dense_gradient(op: &OpCost) -> bool {
    op.op_type.contains("embedding_dense_backward")
}

fn one_op(facts: &Facts) -> Option<Finding> {
    let ops = facts.get::<ModelOps>();
    let op = ops.0.first()?;
    // A callback is Python that the model calls, and has a rule of its own.
    let ordinary = is_dense(&op.op_type) || is_opaque(&op.op_type) || is_callback(&op.op_type);
    let step = facts.summary.length_ms();
    // On several cores ops overlap: an op type cannot own more of the step than its share of the compute.
    let owned = op.ms_per_step.min(op.share * facts.ms(Category::Compute));
    // A kernel without an op is not something that a model is written in.
    if op.is_kernel || ordinary || step <= 0.0 || op.share < ONE_OP || owned / step < SEVERE {
        return None;
    }
    let finding = Finding::new(&RULE, severity(owned / step), OneOp(op.clone()), facts.framework());
    // What the executor does between ops is mostly done for the one that fills the step: it allocates and frees its
    // tensors and wakes its threads. On a device the host's overhead has nothing to do with what its kernels compute.
    let around = if facts.on_device() { 0.0 } else { facts.ms(Category::Dispatch) * op.share };
    let claims = vec![(Category::Compute, owned), (Category::Dispatch, around)];
    let finding = finding.about(op.op_type.clone()).owning(claims, Some(GAIN)).sure(0.85);
    // Copies and single operations inside of compiled programs are the compiler's: rules about programs know their cause.
    let compiled = |wanted: fn(&ProgramOp) -> bool| {
        let same = |row: &&ProgramOp| hlo_opcode(&row.op) == op.op_type && wanted(row);
        let ms: f64 = facts.programs.ops.iter().filter(same).map(|row| row.totals.own.ms()).sum();
        facts.programs.window.per_step(ms).unwrap_or(0.0) >= ONE_OP * op.ms_per_step
    };
    Some(if compiled(|row| row.facts.movement.is_some()) {
        finding.yielding_to(&layout_copies::RULE)
    } else if compiled(|row| row.facts.fusable_bytes > 0) {
        finding.yielding_to(&unfused_ops::RULE)
    } else {
        finding
    })
}

/// The op that fills the step.
#[derive(Clone, Debug)]
pub struct OneOp(pub OpCost);

impl Cause for OneOp {
    fn words(&self, finding: &Finding) -> Words {
        let OneOp(op) = self;
        let example = op.example.as_deref().filter(|example| *example != op.op_type);
        let scope = example.map_or(String::new(), |example| format!(", most of it in {}", quoted(example)));
        let name = quoted(&op.op_type);
        Words {
            summary: format!("Op dominates: {name} takes {}{scope}.", finding.owned(op.ms_per_step)),
            evidence: vec![cost(op)],
            advice: vec![
                rewrite(&op.op_type, &name),
                format!("Find where it comes from: `stepscope ops PATH --filter {}`.", filter(&op.op_type)),
            ],
        }
    }
}

/// An optimizer's update that fills the step.
#[derive(Clone, Debug)]
pub struct Update {
    /// The optimizer's class.
    pub optimizer: String,
    /// Milliseconds per step inside the update.
    pub ms: f64,
    /// Its share of compute.
    pub share: f64,
    /// An embedding has gradients with as many rows as its table.
    pub dense_embedding: bool,
    /// How it goes through the parameters.
    pub updating: Updating,
    /// The op that costs most.
    pub costliest: Option<OpCost>,
}

impl Cause for Update {
    fn words(&self, finding: &Finding) -> Words {
        let (name, class) = (quoted(&self.optimizer), &self.optimizer);
        let mut evidence = vec![format!(
            "The update takes {} per step, {} of all compute: it works on every parameter, whatever the batch used.",
            duration_ms(self.ms),
            share(self.share)
        )];
        evidence.extend(self.costliest.as_ref().map(cost));
        let mut advice = Vec::new();
        if self.dense_embedding {
            evidence.push("An embedding has a dense gradient: one row for each row of its table.".to_owned());
            advice.push(
                "Update only the rows that a batch uses: `nn.Embedding(..., sparse=True)` with \
                 `torch.optim.SparseAdam` (or `SGD`) for these tables."
                    .to_owned(),
            );
        }
        let once = "Read and write each parameter once instead of once per op";
        advice.extend(match (self.updating, joined_update(class)) {
            (Updating::Fused, _) | (Updating::Foreach, Some("foreach")) | (_, None) => None,
            (_, Some(option)) => Some(format!("{once}: `torch.optim.{class}(..., {option}=True)`.")),
        });
        advice.push(
            "Update less often: larger batches, or gradients accumulated over several batches.".to_owned(),
        );
        Words {
            summary: format!(
                "Op dominates: the optimizer {name}{} {}.",
                if self.dense_embedding { " and the dense gradients for it take" } else { " takes" },
                finding.owned(self.ms)
            ),
            evidence,
            advice,
        }
    }
}

/// A pattern for the command line that needs no quotes.
fn filter(op_type: &str) -> String {
    let word: String =
        op_type.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    if word.is_empty() { "REGEX".to_owned() } else { word }
}

/// What usually stands behind an op that should not fill a step.
fn rewrite(op_type: &str, name: &str) -> String {
    let lower = op_type.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if is(&["concat", "cat", "pack", "stack"]) {
        format!(
            "{name} copies all of its inputs: do not grow a tensor in a loop. Collect the parts and join them once, \
             or write into a buffer of full size."
        )
    } else if is(&["sort", "topk", "top_k", "unique"]) {
        format!(
            "Run {name} less often or on less data: keep the k best instead of sorting, or sort when preparing data."
        )
    } else if is(&["gather", "scatter", "embedding", "index"]) {
        format!(
            "{name} reads scattered memory: look up several rows at once, sort indices, or make rows denser."
        )
    } else if is(&["transpose", "permute", "contiguous", "copy", "clone", "identity", "cast", "convert"]) {
        format!("{name} only moves data: keep one layout and one type throughout, and remove copies.")
    } else if decomposes(&lower) {
        format!("Run {name} less often (every few steps), on a smaller matrix, or iteratively.")
    } else if is(&["random", "rand", "dropout", "normal", "uniform"]) {
        format!("Instead of {name}, draw random numbers once for the whole batch, or outside the step.")
    } else if is(&["print", "pyfunc", "py_function", "numpy_function", "io_callback", "assert"]) {
        format!("Remove {name} from the step: it calls back into Python.")
    } else {
        format!(
            "Run {name} less often or on less data, or replace it: it takes longer than everything else together."
        )
    }
}

/// Whether it decomposes or inverts a matrix, by whole words: `sqrt` is no `qr`, and `detach` no `det`.
fn decomposes(lower: &str) -> bool {
    const WORDS: [&str; 14] = [
        "svd", "qr", "cholesky", "inv", "inverse", "pinv", "eigh", "eig", "eigvalsh", "solve", "lstsq",
        "det", "slogdet", "lu",
    ];
    let stems = ["cholesky", "matrixinverse", "matrixdeterminant", "matrixsolve", "selfadjointeig"];
    lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word))
        || stems.iter().any(|stem| lower.contains(stem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::ops::sample;
    use crate::rules::testing::{speaks, words};

    #[test]
    fn only_decompositions_are_told_to_take_a_smaller_matrix() {
        for op in
            ["aten::linalg_qr", "Svd", "aten::_linalg_svd", "MatrixInverse", "Qr", "aten::linalg_inv_ex"]
        {
            assert!(rewrite(op, op).contains("smaller matrix"), "{op}");
        }
        for op in ["aten::sqrt", "Rsqrt", "aten::detach", "InvertPermutation", "aten::square"] {
            assert!(!rewrite(op, op).contains("smaller matrix"), "{op}");
        }
    }

    #[test]
    fn an_update_names_its_optimizer_and_what_it_does_already() {
        let update = |dense_embedding, updating| Update {
            optimizer: "Adam".into(),
            ms: 30.0,
            share: 0.8,
            dense_embedding,
            updating,
            costliest: Some(sample("aten::sqrt")),
        };
        assert_eq!(joined_update("SparseAdam"), None, "it has neither option");
        let said = |dense, updating| {
            words(&RULE, update(dense, updating), stepscope_analyze::vocabulary::Framework::PyTorch)
        };
        let one_by_one = said(true, Updating::OneByOne);
        assert!(one_by_one.summary.contains("the optimizer `Adam`"), "{one_by_one:?}");
        assert!(one_by_one.advice[0].contains("SparseAdam"), "{one_by_one:?}");
        assert!(one_by_one.advice[1].contains("Adam(..., fused=True)"), "{one_by_one:?}");
        let fused = said(false, Updating::Fused).advice.join(" ");
        assert!(!fused.contains("fused") && !fused.contains("sparse"), "{fused}");
    }

    #[test]
    fn it_speaks() {
        for op in ["ConcatV2", "Sort", "GatherV2", "Transpose", "Svd", "RandomUniform", "Print", "Foo"] {
            speaks(&RULE, OneOp(sample(op)));
        }
    }
}
