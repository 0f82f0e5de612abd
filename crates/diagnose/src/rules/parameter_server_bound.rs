//! Workers wait for parameter servers.
//!
//! # What it means
//! With parameter servers, a worker pulls variables before it computes and pushes updates after it. Until they arrive, the
//! worker has nothing to do. Servers are hardly ever busy with ops of their own: what costs time is the number of bytes, and
//! packing them.
//!
//! # How it is detected
//! A worker's steps (not the coordinator's) spend at least {SERVERS} of their time waiting for tensors of other processes
//! that no op hides, and tensors come from a parameter server. The finding tells pulls from pushes. If the servers were
//! recorded too, it says which of them the time is spent on, and whether one serves {UNEVEN} times its part or more. A fix
//! saves at most {GAIN} of this time.
//!
//! # How to fix it
//! Move fewer bytes per step: larger batches per worker, embedding lookups instead of whole tables, more servers. If one server
//! has most of the variables, spread them: `ParameterServerStrategy(resolver, variable_partitioner=…)` with a
//! `MinSizePartitioner`. If the model fits on each machine, exchange gradients without servers:
//! `MultiWorkerMirroredStrategy`.
//!
//! # How to check
//! `communication` of the workers drops.

use stepscope_analyze::Category;
use stepscope_analyze::devices::servers::Servers;
use stepscope_text::{duration_ms, plural, share};

use super::shared::severity;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "parameter-server-bound",
    about: About::Cause,
    view: "ranks",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("parameter_server_bound.rs"),
};

thresholds! {
    /// What waiting for other processes may take, as for collectives.
    SERVERS: Share = 0.15;
    /// A server with this many times its part of the pulls holds up the others.
    UNEVEN: Number = 1.5;
    /// A tensor that arrives while ops run costs the step nothing.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let servers = facts.servers.as_ref()?;
    let share = facts.share(Category::Communication);
    (share >= SERVERS).then(|| {
        let cause = Serving { servers: servers.clone(), ms: facts.ms(Category::Communication) };
        let uneven = cause.uneven().map(|(task, _)| format!("ps/{task}"));
        Finding::new(&RULE, severity(share), cause, facts.framework())
            .owning(facts.claims(&[Category::Communication]), Some(GAIN))
            .about(uneven)
            .sure(0.85)
    })
}

/// Waiting for parameter servers.
#[derive(Clone, Debug)]
pub struct Serving {
    /// What workers receive, and from whom.
    pub servers: Servers,
    /// Milliseconds per step that nothing hides.
    pub ms: f64,
}

impl Serving {
    /// The server with far more than its part of the time, and its share.
    fn uneven(&self) -> Option<(u64, f64)> {
        let servers = &self.servers.servers;
        let all: f64 = servers.iter().map(|server| server.pull_ms + server.push_ms).sum();
        let most = servers
            .iter()
            .max_by(|a, b| (a.pull_ms + a.push_ms).total_cmp(&(b.pull_ms + b.push_ms)))
            .filter(|_| servers.len() > 1 && all > 0.0)?;
        let part = (most.pull_ms + most.push_ms) / all;
        (part >= UNEVEN / servers.len() as f64).then_some((most.task, part))
    }

    fn evidence(&self) -> Vec<String> {
        let servers = &self.servers;
        let mut said = vec![format!(
            "In a worker's step, variables are pulled for {} and the ends of pushes awaited for {}, hidden or not ({}).",
            duration_ms(servers.pull_ms),
            duration_ms(servers.push_ms),
            plural(servers.workers as u64, "recorded worker", "recorded workers")
        )];
        for server in servers.servers.iter().take(8) {
            said.push(format!(
                "`ps/{}`: {} of pulls and {} of pushes per step, in {} tensors.",
                server.task,
                duration_ms(server.pull_ms),
                duration_ms(server.push_ms),
                stepscope_text::decimal(server.tensors, 1)
            ));
        }
        match servers.before_send {
            Some(before) => said.push(format!(
                "The servers begin to send after {} of that time: before it they are late or busy, after it tensors are \
                 packed and travel.",
                share(before)
            )),
            None => said.push("No server was recorded: whether it is late or the transfer is slow does not show.".to_owned()),
        }
        said
    }
}

impl Cause for Serving {
    fn words(&self, finding: &Finding) -> Words {
        let uneven = self.uneven();
        let who = uneven.map_or(String::new(), |(task, part)| {
            format!("; `ps/{task}` alone accounts for {}", share(part))
        });
        let mut advice = Vec::new();
        if uneven.is_some() {
            advice.push(
                "Spread the variables over the servers: pass `variable_partitioner=tf.distribute.experimental.partitioners.\
                 MinSizePartitioner()` to the strategy. Without it, whole variables are dealt out in turn, whatever their \
                 sizes."
                    .to_owned(),
            );
        }
        if self.servers.servers.is_empty() {
            advice.push(
                "Record the servers too, with one `stepscope capture HOST:PORT HOST:PORT ...`, to see which of them it is."
                    .to_owned(),
            );
        }
        advice.push(
            "Move less per step: use larger batches per worker, look up embeddings instead of reading whole tables, and add \
             servers."
                .to_owned(),
        );
        advice.push(
            "If the model fits on each machine, exchange gradients without servers: \
             `tf.distribute.MultiWorkerMirroredStrategy`."
                .to_owned(),
        );
        Words {
            summary: format!(
                "Parameter-server-bound: workers wait for variables of the parameter servers for {}{who}.",
                finding.owned(self.ms)
            ),
            evidence: self.evidence(),
            advice,
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::devices::servers::ServerShare;
    use stepscope_analyze::vocabulary::Framework;

    use super::*;
    use crate::rules::testing::words;

    fn serving(pulls: &[f64]) -> Serving {
        let server = |(task, &pull_ms): (usize, &f64)| ServerShare {
            task: task as u64,
            pull_ms,
            push_ms: 1.0,
            tensors: 4.0,
        };
        let servers = pulls.iter().enumerate().map(server).collect();
        let servers = Servers {
            workers: 2,
            waited_ms: 30.0,
            pull_ms: 20.0,
            push_ms: 10.0,
            before_send: (!pulls.is_empty()).then_some(0.1),
            servers,
        };
        Serving { servers, ms: 30.0 }
    }

    #[test]
    fn one_server_with_most_of_the_work_is_named_and_equal_ones_are_not() {
        assert_eq!(serving(&[20.0, 2.0]).uneven().map(|(task, _)| task), Some(0));
        assert_eq!(serving(&[11.0, 10.0]).uneven(), None);
        assert_eq!(serving(&[20.0]).uneven(), None, "there is no other");
    }

    #[test]
    fn it_asks_for_the_servers_only_if_they_are_missing() {
        let advice = |pulls: &[f64]| words(&RULE, serving(pulls), Framework::TensorFlow).advice.join(" ");
        assert!(advice(&[]).contains("Record the servers") && !advice(&[9.0]).contains("Record the servers"));
        assert!(advice(&[20.0, 2.0]).contains("MinSizePartitioner"));
        for pulls in [&[][..], &[9.0], &[20.0, 2.0]] {
            let said = words(&RULE, serving(pulls), Framework::TensorFlow);
            let all = said.evidence.iter().chain(&said.advice).chain([&said.summary]);
            all.for_each(|line| assert!(line.ends_with('.') && line.matches('`').count() % 2 == 0, "{line}"));
        }
    }
}
