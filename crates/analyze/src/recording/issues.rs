//! The problems of all hosts' recordings, put together: one part per host from [`health`].

use super::health::{Issue, health};
use crate::analysis::Analysis;
use crate::context::Context;

/// Problems of all hosts' recordings.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Issues(Vec<Issue>);

impl Analysis for Issues {
    type Output = Vec<Issue>;

    fn of(context: &Context) -> Self {
        Issues(health(context.trace, &context.host))
    }

    fn merge(&mut self, other: Issues) {
        self.0.extend(other.0);
    }

    fn bound(&mut self) {
        const ISSUES: usize = 64;
        self.0.sort_by(|a, b| a.order().cmp(&b.order()));
        self.0.truncate(ISSUES);
    }

    /// The worst first.
    fn finish(self) -> Vec<Issue> {
        let mut issues = self.0;
        issues.sort_by(|a, b| a.order().cmp(&b.order()));
        issues
    }
}

impl Issues {
    pub(crate) fn push(&mut self, issue: Issue) {
        self.0.push(issue);
    }
}
