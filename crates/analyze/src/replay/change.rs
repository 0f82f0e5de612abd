//! What could be different: the changes that a step can be replayed with, as users write them.

use std::fmt;
use std::str::FromStr;

/// One change. A factor says how many times as fast something becomes; infinity makes it free.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Batches are there when the loop asks for them.
    InputFree,
    /// This many workers load batches ahead.
    Workers(usize),
    /// One worker loads this many batches ahead.
    Prefetch(usize),
    /// All work of a step is launched by one call.
    LaunchGraph,
    /// Products and what is bound by memory run in 16 bits.
    KernelsHalf,
    /// An op or kernel becomes faster.
    Op(String, f64),
    /// All that runs inside of a range or function becomes faster.
    Scope(String, f64),
    /// Collectives run beside the computation.
    OverlapCommunication,
    /// The host does not wait for the device.
    NoSync,
    /// Python between ops becomes faster.
    Python(f64),
    /// The batch becomes so many times as large.
    Batch(f64),
}

/// Why a change cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadChange {
    /// There is no such change.
    Unknown(String),
    /// The value of this change is wrong.
    Value(String),
}

/// How a change is written.
pub const FORMS: [&str; 11] = [
    "input=free",
    "workers=N",
    "prefetch=B",
    "launch=graph",
    "kernels=bf16",
    "op:NAME=xK",
    "scope:NAME=xK",
    "comm=overlap",
    "sync=off",
    "python=xK",
    "batch=xK",
];

impl FromStr for Change {
    type Err = BadChange;

    fn from_str(text: &str) -> Result<Self, BadChange> {
        // Names of ops contain `=` only by accident; the value never does.
        let (what, value) = text.rsplit_once('=').ok_or_else(|| BadChange::Unknown(text.to_owned()))?;
        let bad = || BadChange::Value(text.to_owned());
        let exactly = |word: &str, change: Change| if value == word { Ok(change) } else { Err(bad()) };
        let count =
            || value.parse::<usize>().ok().filter(|count| (1..=4_096).contains(count)).ok_or_else(bad);
        let times = || factor(value).ok_or_else(bad);
        match what {
            "input" => exactly("free", Change::InputFree),
            "workers" => Ok(Change::Workers(count()?)),
            "prefetch" => Ok(Change::Prefetch(count()?)),
            "launch" => exactly("graph", Change::LaunchGraph),
            "kernels" => exactly("bf16", Change::KernelsHalf),
            "comm" => exactly("overlap", Change::OverlapCommunication),
            "sync" => exactly("off", Change::NoSync),
            "python" => Ok(Change::Python(times()?)),
            "batch" => {
                times()?.is_finite().then_some(()).ok_or_else(bad).and_then(|()| Ok(Change::Batch(times()?)))
            }
            _ => match what.split_once(':') {
                Some(("op", name)) if !name.is_empty() => Ok(Change::Op(name.to_owned(), times()?)),
                Some(("scope", name)) if !name.is_empty() => Ok(Change::Scope(name.to_owned(), times()?)),
                _ => Err(BadChange::Unknown(text.to_owned())),
            },
        }
    }
}

/// `x2` is twice as fast, `xinf` free.
fn factor(value: &str) -> Option<f64> {
    let value = value.strip_prefix(['x', '×'])?;
    let factor = if value == "inf" { f64::INFINITY } else { value.parse().ok()? };
    (factor > 0.0).then_some(factor)
}

impl fmt::Display for Change {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::InputFree => to.write_str("input=free"),
            Change::Workers(count) => write!(to, "workers={count}"),
            Change::Prefetch(count) => write!(to, "prefetch={count}"),
            Change::LaunchGraph => to.write_str("launch=graph"),
            Change::KernelsHalf => to.write_str("kernels=bf16"),
            Change::Op(name, factor) => write!(to, "op:{name}=x{factor}"),
            Change::Scope(name, factor) => write!(to, "scope:{name}=x{factor}"),
            Change::OverlapCommunication => to.write_str("comm=overlap"),
            Change::NoSync => to.write_str("sync=off"),
            Change::Python(factor) => write!(to, "python=x{factor}"),
            Change::Batch(factor) => write!(to, "batch=x{factor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let all = [
            "input=free",
            "workers=4",
            "prefetch=2",
            "launch=graph",
            "kernels=bf16",
            "op:aten::mm=x2",
            "op:a=b=xinf",
            "scope:train/step=x1.5",
            "comm=overlap",
            "sync=off",
            "python=x10",
            "batch=x2",
        ];
        for text in all {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in [
            "",
            "input",
            "input=fast",
            "workers=0",
            "workers=x2",
            "op:=x2",
            "python=2",
            "python=x0",
            "batch=xinf",
        ] {
            assert!(text.parse::<Change>().is_err(), "{text}");
        }
    }
}
