//! Collectives that do not hide under compute fill the step.
//!
//! # What it means
//! The step waits while devices exchange data, or while they wait for one another.
//!
//! # How it is detected
//! `communication` owns at least {COMMUNICATION} of the step; the finding also reports what is hidden. With several ranks,
//! it matches the same collectives (by step, order, name, group and size), on clocks that are aligned by the collectives'
//! ends: until the last rank arrives, a rank waits; after that, data is exchanged. If ranks are missing from the recording,
//! the two cannot be distinguished, and the finding asks for the other ranks. Where processors exchange data, waiting for a
//! late rank is not counted: it belongs to that rank. A fix saves at most {GAIN} of this time
//! by overlap, fewer bytes or balance. From {MANY} collectives per step on, if the median one has fewer than {SMALL} elements,
//! or, where sizes are not recorded, if setting them up takes {SETTING_UP} of a rank's time in them, the finding says that
//! they are too many and too small. Names of collectives and of ops of the backward pass say what is exchanged. With
//! TensorFlow's parameter servers there are no collectives: the time in which tensors of another process are awaited
//! (`_Recv`), and calls that another process runs, are communication.
//!
//! # How to fix it
//! Larger batches per device help in all frameworks.
//!
//! PyTorch: by what is exchanged. Gradients: `no_sync()` while accumulating, `bf16_compress_hook`, `bucket_cap_mb`,
//! `gradient_as_bucket_view=True`. Sharded parameters: `reshard_after_forward=False`, prefetching. Activations of a split
//! model, as in inference: fewer devices per copy. Stages of a pipeline: more micro-batches.
//!
//! TensorFlow and Keras: `CommunicationOptions(bytes_per_pack=...)`, NCCL. Parameter servers: more of them, partitioned
//! variables, larger batches per worker.
//!
//! JAX: `--xla_gpu_enable_latency_hiding_scheduler=true`, other shardings.
//!
//! # How to check
//! `communication` drops.

mod many;

use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::Waiting;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms, plural, quoted, share};

pub use many::Many;
use many::{counted, in_larger_packs, many};

use super::parameter_server_bound;
use super::shared::{of_step, on_one_clock, severity};
use super::straggler::missing;
use crate::facts::{Exchange, Exchanges, Facts, OneSide};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "communication-bound",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("communication_bound.rs"),
};

thresholds! {
    /// What collectives may take.
    COMMUNICATION: Share = 0.15;
    /// One exchange per layer of a small model; packs and buckets exist to have fewer.
    MANY: Number = 20.0;
    /// A megabyte of 32-bit numbers travels about as long as the messages that arrange it; frameworks pack 25 MB and more.
    SMALL: Number = 262_144.0;
    /// Each collective is set up by itself, whatever its size.
    SETTING_UP: Share = 0.30;
    /// A collective that overlaps with compute costs the step nothing.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let all_ms = facts.ms(Category::Communication);
    let waiting = facts.collectives.waiting.as_ref().filter(|waiting| waiting.on_host);
    let waited = waiting.and_then(|waiting| waiting.of_host(&facts.summary.bound()?.host));
    let ms = (all_ms - waited.unwrap_or(0.0)).max(0.0);
    let share = of_step(facts, ms);
    (share >= COMMUNICATION).then(|| {
        let steps = facts.summary.count.max(1) as f64;
        let hidden_ms = facts.summary.bound().map_or(0.0, |host| host.hidden_communication_ms) / steps;
        let many = waiting.and_then(many);
        let (waiting, exchanges) = (facts.collectives.waiting.clone(), Exchanges::of(facts));
        let (one_side, on_device) = (OneSide::of(facts), facts.on_device());
        let missing = OneSide::missing(facts);
        // Where a rank is missing, part of this is waiting for it.
        let sure = if missing.is_some() { 0.6 } else { 0.85 };
        let cause = Collectives { ms, hidden_ms, exchanges, waiting, one_side, missing, many, on_device };
        Finding::new(&RULE, severity(share), cause, facts.framework())
            .owning(vec![(Category::Communication, ms)], Some(GAIN))
            .yielding_to(&parameter_server_bound::RULE)
            .sure(sure)
    })
}

/// Collectives.
#[derive(Clone, Debug)]
pub struct Collectives {
    /// Milliseconds per step that are not hidden.
    pub ms: f64,
    /// Milliseconds per step that hide under compute.
    pub hidden_ms: f64,
    /// What is exchanged.
    pub exchanges: Exchanges,
    /// The collectives of several ranks, compared.
    pub waiting: Option<Waiting>,
    /// The ranks that were recorded, if others took part.
    pub one_side: Option<OneSide>,
    /// Ranks that were not recorded, while others could be compared.
    pub missing: Option<OneSide>,
    /// Are there too many small ones?
    pub many: Option<Many>,
    /// Between devices, rather than processors?
    pub on_device: bool,
}

impl Cause for Collectives {
    fn words(&self, finding: &Finding) -> Words {
        if self.exchanges.remote {
            return other_processes(finding, self.ms);
        }
        let mut evidence = vec![format!(
            "Collectives take {} per step that is not hidden under compute.",
            duration_ms(self.ms)
        )];
        evidence.push(if self.hidden_ms > 0.0 {
            let part = share(self.hidden_ms / (self.ms + self.hidden_ms));
            format!("Another {} per step is hidden ({part} of all).", duration_ms(self.hidden_ms))
        } else {
            "None of it is hidden under compute.".to_owned()
        });
        evidence.extend(self.many.map(counted));
        evidence.extend(most(&self.exchanges));
        evidence.extend(self.waiting.iter().flat_map(waits));
        evidence.extend(self.one_side.map(alone));
        evidence.extend(self.missing.map(missing));
        let mut advice = exchange_less(finding.framework, &self.exchanges, self.on_device);
        if self.many.is_some() {
            advice.retain(|line| !line.contains("bytes_per_pack"));
            advice.insert(0, in_larger_packs(finding.framework).to_owned());
        }
        // Faster links and fewer bytes do nothing against waiting.
        if self.waiting.as_ref().is_some_and(|found| found.waiting_ms() > found.transfer_ms()) {
            let balance = "Balance the ranks first: most of this time is waiting. Give each rank the same work and the \
                           same amount of data.";
            advice.insert(0, balance.to_owned());
        }
        let mut what = "collectives take";
        if self.one_side.is_some() {
            what = "collectives, or waiting for other ranks in them, take";
            advice = after_the_others(advice);
        }
        Words {
            summary: format!(
                "Communication-bound: {what} {}{}.",
                finding.owned(self.ms),
                self.many.map_or(String::new(), |many| format!(
                    "; there are {} small ones per step",
                    decimal(many.per_step, 0)
                ))
            ),
            evidence,
            advice,
        }
    }
}

/// Calls and tensors of other processes, without collectives.
fn other_processes(finding: &Finding, ms: f64) -> Words {
    Words {
        summary: format!(
            "Communication-bound: waiting for other processes, such as workers or parameter servers, takes {}.",
            finding.owned(ms)
        ),
        evidence: lines([
            "No collective was recorded: tensors travel by remote calls between processes.",
            "Whether the other process is busy or the transfer is slow shows only in its own recording.",
        ]),
        advice: remote_calls(finding.framework),
    }
}

fn remote_calls(framework: Framework) -> Vec<String> {
    match framework {
        Framework::TensorFlow | Framework::Keras => lines([
            "Record the other processes too, with one `stepscope capture HOST:PORT HOST:PORT ...`: on a coordinator this \
             is the time that its workers take, on a worker the time for pulling variables and pushing gradients.",
            "Move less per step: use larger batches per worker, look up embeddings instead of reading whole tables, and \
             spread variables over more servers (`tf.distribute.experimental.partitioners.MinSizePartitioner`).",
            "If the model fits on each machine, exchange gradients without servers: \
             `tf.distribute.MultiWorkerMirroredStrategy`.",
        ]),
        _ => lines([ANYWHERE]),
    }
}

/// The sort of collective that takes most of the time, if names say.
fn most(exchanges: &Exchanges) -> Option<String> {
    let all: f64 = exchanges.sorts.iter().map(|(_, ms)| ms).sum();
    let (sort, ms) = exchanges.sorts.first().filter(|_| all > 0.0)?;
    let name = match sort {
        Exchange::AllReduce => "all-reduce",
        Exchange::ReduceScatter => "reduce-scatter",
        Exchange::AllGather => "all-gather",
        Exchange::AllToAll => "all-to-all",
        Exchange::PointToPoint => "send and receive",
        Exchange::Broadcast => "broadcast",
        Exchange::Unknown => return None,
    };
    Some(format!("Most of it is {name}: {} of the collectives' time.", share(ms / all)))
}

fn exchange_less(framework: Framework, exchanges: &Exchanges, on_device: bool) -> Vec<String> {
    match framework {
        Framework::PyTorch => torch(exchanges),
        Framework::TensorFlow | Framework::Keras => lines([
            "Use larger batches per replica, so that more compute covers the same exchange.",
            "Exchange in larger packs and over NCCL: `tf.distribute.experimental.CommunicationOptions(\
             bytes_per_pack=50 * 1024 * 1024)`.",
        ]),
        Framework::Jax if !on_device => {
            lines(["Use larger batches per device, or shard so that fewer axes need an exchange."])
        }
        Framework::Jax => lines([
            "Let XLA overlap collectives with compute: `XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true` \
             (on GPUs).",
            "Use larger batches per device, or shard so that fewer axes need an exchange.",
        ]),
        Framework::Unknown => lines([ANYWHERE]),
    }
}

const ANYWHERE: &str = "Exchange less often, less data, or during compute; use larger batches per device.";

/// What helps depends on what is exchanged: gradients, shards of parameters, activations.
fn torch(exchanges: &Exchanges) -> Vec<String> {
    let sharded = exchanges.has(Exchange::ReduceScatter);
    match (exchanges.learns, exchanges.most()) {
        (_, Some(Exchange::AllToAll)) => lines([
            "Exchange less: send tokens or embeddings in 16 bits, and balance experts or tables, so that no rank waits.",
            "Overlap better: split the batch in two and compute on one half while the other is exchanged.",
        ]),
        // NCCL runs an all-to-all as sends and receives too.
        (_, Some(Exchange::PointToPoint)) => lines([
            "If this is an all-to-all: send tokens or embeddings in 16 bits, and balance experts or tables, so that no rank \
             waits.",
            "If these are the stages of a pipeline: use more micro-batches per step or an interleaved schedule, so that \
             stages wait less for one another.",
        ]),
        (Some(false), Some(_)) => lines([
            "No gradients are computed, so the ranks exchange parts of a split model: split it over fewer devices, and run \
             more copies of it, if it fits.",
            "Use larger batches, and devices with a direct link (NVLink, xGMI).",
        ]),
        (Some(true), Some(Exchange::ReduceScatter | Exchange::AllGather)) if sharded => lines([
            "Parameters are sharded. If memory allows, keep them after the forward pass: `fully_shard(model, \
             reshard_after_forward=False)`, or shard within one machine only.",
            "Overlap better: prefetch the next layer (`forward_prefetch=True`, \
             `backward_prefetch=BackwardPrefetch.BACKWARD_PRE`), and use larger batches per device.",
        ]),
        (Some(true), Some(Exchange::Broadcast)) => {
            lines(["If buffers need not be equal on all ranks, do not send them in each step: \
             `DistributedDataParallel(model, broadcast_buffers=False)`."])
        }
        (Some(true), Some(Exchange::AllReduce)) => lines([
            "Exchange less often: accumulate gradients under `with model.no_sync():`, or use larger batches per device.",
            "Exchange less: `model.register_comm_hook(None, default_hooks.bf16_compress_hook)`. Overlap better: try \
             another `bucket_cap_mb` and `gradient_as_bucket_view=True`.",
        ]),
        _ => lines([ANYWHERE]),
    }
}

/// Why one side cannot tell waiting from transfer.
fn alone(side: OneSide) -> String {
    let recorded = match (side.recorded, side.of) {
        (1, Some(all)) => format!("Only one of {all} ranks was recorded"),
        (some, Some(all)) => format!("Only {some} of {all} ranks were recorded"),
        (_, None) => "Only one rank was recorded".to_owned(),
    };
    format!(
        "{recorded}. It stays in a collective until the last rank arrives, so waiting for a late rank and the transfer \
         itself look the same."
    )
}

/// Before anything is done about the exchange, it must be known that it is one.
fn after_the_others(advice: Vec<String>) -> Vec<String> {
    let record = "Record the other ranks as well, in the same steps, and report on all of them together: \
                  `stepscope report RANK0 RANK1 ...`. This shows whether a rank arrives late.";
    let late =
        "If a rank arrives late, speed up that rank: neither fewer bytes nor faster links shorten the wait.";
    let mut first: Vec<String> = lines([record, late]);
    first.extend(
        advice.into_iter().take(1).map(|exchange| format!("If none is late: {}", lower_first(&exchange))),
    );
    first
}

/// A sentence that continues another.
fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

/// Waiting and transfer, and who is late.
fn waits(found: &Waiting) -> Vec<String> {
    let mut facts = vec![format!(
        "Over {}, a rank waits {} per step for the last one to arrive and exchanges data for {}.",
        plural(found.ranks.len() as u64, "rank", "ranks"),
        duration_ms(found.waiting_ms()),
        duration_ms(found.transfer_ms())
    )];
    let latest = found.latest().filter(|rank| rank.last > 0.5);
    facts.extend(latest.map(|rank| {
        format!("{} arrives last at {} of the collectives.", quoted(&rank.name), share(rank.last))
    }));
    facts.extend(found.clocks.map(on_one_clock));
    facts
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::devices::collectives::RankWaiting;

    use super::*;
    use crate::rules::testing::{speaks, words};

    fn waiting() -> Waiting {
        let rank = |name: &str, waiting_ms, last| RankWaiting {
            name: name.into(),
            waiting_ms,
            transfer_ms: 1.0,
            last,
            ..RankWaiting::default()
        };
        Waiting {
            ranks: vec![rank("a", 3.0, 0.1), rank("b", 0.2, 0.9)],
            collectives_per_step: 12.0,
            ..Waiting::default()
        }
    }

    fn collectives(sorts: &[Exchange], learns: Option<bool>) -> Collectives {
        let sorts = sorts.iter().map(|sort| (*sort, 2.0)).collect();
        let exchanges = Exchanges { sorts, remote: false, learns };
        Collectives {
            ms: 4.0,
            hidden_ms: 1.0,
            exchanges,
            waiting: None,
            one_side: None,
            missing: None,
            many: None,
            on_device: true,
        }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, collectives(&[], None));
        speaks(&RULE, Collectives { hidden_ms: 0.0, waiting: Some(waiting()), ..collectives(&[], None) });
        for sort in [
            Exchange::AllReduce,
            Exchange::ReduceScatter,
            Exchange::AllGather,
            Exchange::AllToAll,
            Exchange::PointToPoint,
            Exchange::Broadcast,
            Exchange::Unknown,
        ] {
            speaks(&RULE, collectives(&[sort], Some(true)));
            speaks(&RULE, collectives(&[sort], Some(false)));
        }
    }

    #[test]
    fn advice_about_gradients_is_only_for_those_who_exchange_some() {
        let advice = |sorts: &[Exchange], learns| {
            words(&RULE, collectives(sorts, learns), Framework::PyTorch).advice.join(" ")
        };
        let gradients = advice(&[Exchange::AllReduce], Some(true));
        assert!(gradients.contains("no_sync"), "{gradients}");
        for (sorts, learns) in [
            (vec![Exchange::AllReduce], Some(false)),
            (vec![Exchange::AllReduce], None),
            (vec![Exchange::AllGather, Exchange::ReduceScatter], Some(true)),
            (vec![Exchange::AllGather], Some(true)),
            (vec![Exchange::AllToAll], Some(true)),
            (vec![Exchange::Unknown], Some(true)),
        ] {
            let said = advice(&sorts, learns);
            assert!(!said.contains("no_sync") && !said.contains("gradients under"), "{sorts:?} {said}");
        }
        assert!(advice(&[Exchange::AllReduce], Some(false)).contains("split model"));
        assert!(advice(&[Exchange::AllGather, Exchange::ReduceScatter], Some(true)).contains("reshard"));
    }

    #[test]
    fn parameter_servers_have_no_collectives_to_pack() {
        let remote = Exchanges { remote: true, ..Exchanges::default() };
        let said = words(
            &RULE,
            Collectives { exchanges: remote.clone(), ..collectives(&[], None) },
            Framework::TensorFlow,
        );
        assert!(said.summary.contains("waiting for other processes"), "{said:?}");
        assert!(!said.advice.join(" ").contains("bytes_per_pack"), "{said:?}");
        speaks(&RULE, Collectives { exchanges: remote, ..collectives(&[], None) });
    }

    #[test]
    fn one_side_asks_for_the_others_before_it_advises_on_the_exchange() {
        for of in [None, Some(2)] {
            let one_side = Some(OneSide { recorded: 1, of });
            let cause = Collectives { one_side, ..collectives(&[Exchange::AllReduce], Some(true)) };
            speaks(&RULE, cause.clone());
            let told = words(&RULE, cause, Framework::PyTorch);
            assert!(told.summary.contains("waiting for other ranks"), "{told:?}");
            assert!(told.advice[0].starts_with("Record the other ranks"), "{told:?}");
            assert!(!told.advice.iter().any(|line| line.contains("compress")), "{told:?}");
        }
    }

    #[test]
    fn many_small_collectives_are_counted_and_packed_first() {
        let per_step = |collectives_per_step, elements, setup_ms| {
            let mut waiting = Waiting { collectives_per_step, elements, ..waiting() };
            waiting.ranks[1].setup_ms = setup_ms;
            many(&waiting).map(|many| many.per_step)
        };
        assert_eq!((per_step(46.0, Some(9_000), 0.0), per_step(46.0, None, 0.9)), (Some(46.0), Some(46.0)));
        assert_eq!((per_step(3.0, Some(9_000), 0.9), per_step(46.0, Some(9_000_000), 0.9)), (None, None));
        assert_eq!(
            (per_step(46.0, None, 0.1), per_step(46.0, None, 0.0)),
            (None, None),
            "no sign of small ones"
        );
        let many = Some(Many { per_step: 46.0, each_ms: 0.2, setup_ms: 2.0 });
        let cause = Collectives { many, ..collectives(&[], None) };
        speaks(&RULE, cause.clone());
        let said = words(&RULE, cause, Framework::TensorFlow);
        assert!(said.advice[0].contains("bytes_per_pack"), "{said:?}");
        assert!(said.summary.contains("46 small ones"), "{said:?}");
    }

    #[test]
    fn ranks_that_mostly_wait_are_told_to_balance_first() {
        let cause = Collectives { waiting: Some(waiting()), ..collectives(&[], None) };
        let told = words(&RULE, cause, Framework::PyTorch);
        assert!(told.advice[0].starts_with("Balance"), "{told:?}");
        assert!(told.evidence.iter().any(|line| line.contains("waits 1.60 ms per step")), "{told:?}");
    }
}
