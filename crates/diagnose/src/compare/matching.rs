//! Which op of one side is which of the other.
//!
//! Callers give stable names already (`conv2d_7` and `conv2d`, `fusion.123`, `__inference_f_42` are one each).
//! What then still has no partner is another implementation: kernels of another vendor, another library
//! version, a fused op. Such ops are put together by type, where both sides have leftovers of that type.

use std::collections::BTreeMap;

use super::side::{ComparedRun, OpTime};

/// How an op found its partner.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// By its stable name.
    Name,
    /// By its type: implementations differ.
    Type,
    /// Not at all: only BASE has it.
    BaseOnly,
    /// Not at all: only NEW has it.
    NewOnly,
}

/// One op on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct OpDelta {
    /// The stable name; of ops matched by type, the type.
    pub name: String,
    /// Its type.
    pub op_type: String,
    /// Does it run on a device?
    pub on_device: bool,
    /// How it found its partner.
    pub matched: Match,
    /// Self time a step in milliseconds.
    pub base_ms: f64,
    /// The same of NEW.
    pub new_ms: f64,
    /// How many a step.
    pub base_count: f64,
    /// The same of NEW.
    pub new_count: f64,
}

impl OpDelta {
    /// NEW − BASE in milliseconds a step.
    pub fn delta_ms(&self) -> f64 {
        self.new_ms - self.base_ms
    }
}

type Key = (bool, String, String);

/// The mean over a side's runs, by name.
fn side(runs: &[ComparedRun]) -> BTreeMap<Key, (f64, f64)> {
    let with_ops = runs.iter().filter(|run| !run.ops.is_empty()).count().max(1) as f64;
    let mut all: BTreeMap<Key, (f64, f64)> = BTreeMap::new();
    for op in runs.iter().flat_map(|run| &run.ops) {
        let OpTime { name, op_type, on_device, ms_per_step, count_per_step } = op;
        let (ms, count) = all.entry((*on_device, name.clone(), op_type.clone())).or_default();
        *ms += ms_per_step / with_ops;
        *count += count_per_step / with_ops;
    }
    all
}

/// Matches both sides' ops, the largest change first.
pub(crate) fn match_ops(base: &[ComparedRun], new: &[ComparedRun]) -> Vec<OpDelta> {
    let (base, mut new) = (side(base), side(new));
    let mut deltas = Vec::with_capacity(base.len());
    let mut left: BTreeMap<(bool, String), Leftover> = BTreeMap::new();
    for (key, time) in base {
        match new.remove(&key) {
            Some(partner) => deltas.push(delta(key, Match::Name, time, partner)),
            None => left.entry((key.0, key.2.clone())).or_default().base.push((key, time)),
        }
    }
    for (key, time) in new {
        left.entry((key.0, key.2.clone())).or_default().new.push((key, time));
    }
    deltas.extend(left.into_values().flat_map(Leftover::deltas));
    deltas
        .sort_by(|a, b| b.delta_ms().abs().total_cmp(&a.delta_ms().abs()).then_with(|| a.name.cmp(&b.name)));
    deltas
}

/// What found no partner by name, of one type.
#[derive(Default)]
struct Leftover {
    base: Vec<(Key, (f64, f64))>,
    new: Vec<(Key, (f64, f64))>,
}

impl Leftover {
    fn deltas(self) -> Vec<OpDelta> {
        let total = |side: &[(Key, (f64, f64))]| {
            side.iter().fold((0.0, 0.0), |sum, (_, time)| (sum.0 + time.0, sum.1 + time.1))
        };
        if let (Some(((on_device, _, op_type), _)), false) = (self.base.first(), self.new.is_empty())
            && !op_type.is_empty()
        {
            let key = (*on_device, op_type.clone(), op_type.clone());
            return vec![delta(key, Match::Type, total(&self.base), total(&self.new))];
        }
        let base = self.base.into_iter().map(|(key, time)| delta(key, Match::BaseOnly, time, (0.0, 0.0)));
        let new = self.new.into_iter().map(|(key, time)| delta(key, Match::NewOnly, (0.0, 0.0), time));
        base.chain(new).collect()
    }
}

fn delta(key: Key, matched: Match, base: (f64, f64), new: (f64, f64)) -> OpDelta {
    let (on_device, name, op_type) = key;
    OpDelta {
        name,
        op_type,
        on_device,
        matched,
        base_ms: base.0,
        new_ms: new.0,
        base_count: base.1,
        new_count: new.1,
    }
}

/// A name scope on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeDelta {
    /// Its path from the root, without the ops' own names.
    pub name: String,
    /// Milliseconds a step in BASE, all ops below it together.
    pub base_ms: f64,
    /// Milliseconds a step in NEW.
    pub new_ms: f64,
}

impl ScopeDelta {
    /// How much longer it takes in NEW.
    pub fn delta_ms(&self) -> f64 {
        self.new_ms - self.base_ms
    }
}

/// Parts of a path that make a scope worth a row of its own: deeper ones are ops by another name.
const SCOPE_PARTS: usize = 2;

/// The scopes that the ops' names tell, the largest change first. Of an op `encoder/layer/dense/MatMul` the scopes
/// are `encoder` and `encoder/layer`.
pub(crate) fn match_scopes(ops: &[OpDelta]) -> Vec<ScopeDelta> {
    let mut scopes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for op in ops {
        for (end, _) in op.name.match_indices('/').take(SCOPE_PARTS) {
            let (base, new) = scopes.entry(&op.name[..end]).or_default();
            *base += op.base_ms;
            *new += op.new_ms;
        }
    }
    let delta =
        |(name, (base_ms, new_ms)): (&str, (f64, f64))| ScopeDelta { name: name.to_owned(), base_ms, new_ms };
    let mut deltas: Vec<ScopeDelta> = scopes.into_iter().map(delta).collect();
    deltas
        .sort_by(|a, b| b.delta_ms().abs().total_cmp(&a.delta_ms().abs()).then_with(|| a.name.cmp(&b.name)));
    deltas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ops: &[(&str, &str, f64)]) -> Vec<ComparedRun> {
        let op = |&(name, op_type, ms): &(&str, &str, f64)| OpTime {
            name: name.to_owned(),
            op_type: op_type.to_owned(),
            on_device: true,
            ms_per_step: ms,
            count_per_step: 1.0,
        };
        vec![ComparedRun { ops: ops.iter().map(op).collect(), ..ComparedRun::default() }]
    }

    #[test]
    fn a_scopes_change_is_that_of_all_its_ops() {
        let base = run(&[
            ("enc/attn/MatMul", "MatMul", 4.0),
            ("enc/ffn/MatMul", "MatMul", 2.0),
            ("loss", "Sum", 1.0),
        ]);
        let new = run(&[
            ("enc/attn/MatMul", "MatMul", 1.0),
            ("enc/ffn/MatMul", "MatMul", 2.5),
            ("loss", "Sum", 1.0),
        ]);
        let scopes = match_scopes(&match_ops(&base, &new));
        let told: Vec<(&str, f64)> =
            scopes.iter().map(|scope| (scope.name.as_str(), scope.delta_ms())).collect();
        assert_eq!(told, [("enc/attn", -3.0), ("enc", -2.5), ("enc/ffn", 0.5)]);
    }

    #[test]
    fn ops_meet_by_name_and_other_vendors_kernels_by_type() {
        let base = run(&[("dense", "MatMul", 5.0), ("ampere_sgemm", "gemm", 3.0), ("relu", "Relu", 1.0)]);
        let new = run(&[("dense", "MatMul", 4.0), ("Cijk_Ailk", "gemm", 6.0), ("drop", "Dropout", 0.5)]);
        let found: Vec<(String, Match, f64)> = match_ops(&base, &new)
            .into_iter()
            .map(|op| (op.name.clone(), op.matched, op.delta_ms()))
            .collect();
        let want = [
            ("gemm", Match::Type, 3.0),
            ("dense", Match::Name, -1.0),
            ("relu", Match::BaseOnly, -1.0),
            ("drop", Match::NewOnly, 0.5),
        ];
        assert_eq!(found, want.map(|(name, matched, ms)| (name.to_owned(), matched, ms)));
    }

    #[test]
    fn several_runs_are_averaged() {
        let base = [run(&[("a", "A", 2.0)]), run(&[("a", "A", 4.0)])].concat();
        assert_eq!(match_ops(&base, &run(&[("a", "A", 4.0)]))[0].delta_ms(), 1.0);
    }
}
