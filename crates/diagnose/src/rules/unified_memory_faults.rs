//! Kernels or the host wait for pages of unified memory to move.
//!
//! # What it means
//! Memory from `cudaMallocManaged` moves when host or device touch it. Each first touch is a page fault: the kernel stops
//! until the driver has moved the page. That is many times slower than a copy of the same bytes.
//!
//! # How it is detected
//! Nsight Systems records migrations of unified memory as copies, and page faults if it is asked for them
//! (`--cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true`). The finding counts the time in which pages move or
//! faults are handled while kernels run, and the exposed migrations of programs that never prefetch. If a kernel also ran
//! without any migration, in the same launch configuration, it counts how much longer the other runs took. It fires if this
//! owns at least {NOTABLE} of the step, or as a remark if it is at least {KERNEL_SHARE} of `compute`. A fix saves at most
//! {GAIN} of this time.
//!
//! # How to fix it
//! Move data before it is used: `cudaMemPrefetchAsync`. Say where it belongs: `cudaMemAdvise`.
//!
//! Data that one side alone uses: `cudaMalloc` with `cudaMemcpyAsync`.
//!
//! Flags and counters that the host reads in every iteration: pinned memory (`cudaHostAlloc`) or a small `cudaMemcpyAsync`.
//!
//! # How to check
//! `stepscope devices PATH` shows fewer and larger copies; `stepscope kernels PATH` shows shorter kernels.

use stepscope_analyze::Category;
use stepscope_analyze::devices::bottleneck::{HeldUp, Unified};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{bytes, duration_ms, listed, plural, quoted, several, share};

use super::shared::copies::COPIES;
use super::shared::{of_step, severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{KERNEL_SHARE, NOTABLE};

/// The rule.
pub static RULE: Rule = Rule {
    id: "unified-memory-faults",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("unified_memory_faults.rs"),
};

thresholds! {
    /// Pages that are already there cost nothing.
    GAIN: Share = 1.0;
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let unified = &detail.unified;
    let during = unified.shares.get(Category::Compute).max(unified.held_up);
    let compute = facts.ms(Category::Compute);
    let held_up = detail.per_step(during).min(compute);
    let mut claims = vec![(Category::Compute, held_up)];
    // A prefetch moves pages too, and is what one should do.
    if !unified.prefetches {
        claims
            .extend(facts.owned_of(&unified.shares).into_iter().filter(|(owner, _)| COPIES.contains(owner)));
    }
    let ms = total(&claims);
    let part = of_step(facts, ms);
    let remark = held_up > 0.0 && held_up >= KERNEL_SHARE * compute;
    if part < NOTABLE && !remark {
        return None;
    }
    let cause = Pages::of(unified, detail.steps, ms, held_up / compute.max(f64::MIN_POSITIVE));
    let sure = if cause.kernel.is_some() || unified.faults[0] > 0 { 0.85 } else { 0.7 };
    Some(match part >= NOTABLE {
        true => {
            let finding = Finding::new(&RULE, severity(part), cause, facts.framework());
            finding.owning(claims, Some(GAIN)).sure(sure)
        }
        false => Finding::new(&RULE, Severity::Info, cause, facts.framework()).sure(sure),
    })
}

/// Pages that move.
#[derive(Clone, Debug)]
pub struct Pages {
    /// Milliseconds per step that this costs.
    pub ms: f64,
    /// The share of the kernel time that it costs.
    pub share: f64,
    /// Migrations per step to the device and to the host, with their bytes.
    pub moved: [(f64, Option<f64>); 2],
    /// Page faults per step on the device and on the host, if recorded.
    pub faults: [f64; 2],
    /// The kernel that was held up most.
    pub kernel: Option<HeldUp>,
}

impl Pages {
    fn of(unified: &Unified, steps: usize, ms: f64, share: f64) -> Self {
        let steps = steps.max(1) as f64;
        Pages {
            ms,
            share,
            moved: unified
                .moved
                .map(|moved| (moved.copies as f64 / steps, moved.bytes.map(|bytes| bytes as f64 / steps))),
            faults: unified.faults.map(|faults| faults as f64 / steps),
            kernel: unified.kernel.clone(),
        }
    }

    fn migrations(&self) -> Option<String> {
        let way = |(index, &(count, size)): (usize, &(f64, Option<f64>))| {
            let to = ["to the device", "to the host"].get(index)?;
            let sized = size.map_or(String::new(), |size| format!(" with {}", bytes(size)));
            (count > 0.0).then(|| format!("{} {to}{sized}", several(count, "migration", "migrations")))
        };
        let ways: Vec<String> = self.moved.iter().enumerate().filter_map(way).collect();
        (!ways.is_empty()).then(|| format!("Per step: {}.", listed(&ways)))
    }

    fn faulted(&self) -> Option<String> {
        let place = |(index, &count): (usize, &f64)| {
            let on = ["on the device", "on the host"].get(index)?;
            (count > 0.0).then(|| format!("{} {on}", several(count, "page fault", "page faults")))
        };
        let places: Vec<String> = self.faults.iter().enumerate().filter_map(place).collect();
        (!places.is_empty()).then(|| format!("Per step: {}.", listed(&places)))
    }
}

impl Cause for Pages {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence: Vec<String> = self.migrations().into_iter().chain(self.faulted()).collect();
        if let Some(kernel) = &self.kernel {
            evidence.push(format!(
                "{}: {} with migrations, {} on average; without any it takes {}.",
                quoted(&kernel.name),
                plural(kernel.runs, "run", "runs"),
                duration_ms(kernel.with.ms()),
                duration_ms(kernel.without.ms())
            ));
        }
        Words {
            summary: format!(
                "Unified memory: pages move between host and device on demand for {}.",
                if finding.claims.is_empty() {
                    format!("{} of the kernel time", share(self.share))
                } else {
                    finding.owned(self.ms)
                }
            ),
            evidence,
            advice: ahead(finding.framework),
        }
    }
}

fn ahead(framework: Framework) -> Vec<String> {
    let own = match framework {
        Framework::Unknown => {
            "Move data before a kernel needs it: `cudaMemPrefetchAsync(p, bytes, device, stream)`, and back \
                               with `cudaCpuDeviceId` before the host reads it."
        }
        _ => {
            "Find the extension that uses managed memory (`cudaMallocManaged`), and let it prefetch: \
              `cudaMemPrefetchAsync(p, bytes, device, stream)`."
        }
    };
    [
        own,
        "For data that only the device uses, use `cudaMalloc`, and fill it with one copy or on the device.",
        "For flags that both sides use in every iteration, use pinned memory (`cudaHostAlloc`) or copy them explicitly.",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let kernel =
            HeldUp { name: "flags".to_owned(), runs: 11, with: Dur::from_us(71), without: Dur::from_us(2) };
        let moved = [(3.0, Some(65_536.0)), (1.0, None)];
        speaks(&RULE, Pages { ms: 30.0, share: 0.5, moved, faults: [12.0, 1.0], kernel: Some(kernel) });
        speaks(&RULE, Pages { ms: 30.0, share: 0.5, moved, faults: [0.0, 0.0], kernel: None });
    }
}
