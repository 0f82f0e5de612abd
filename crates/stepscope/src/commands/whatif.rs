//! What `stepscope whatif` has beyond other views: the changes that are asked for.

use clap::Args;
use stepscope_analyze::replay::{BadChange, Change, FORMS};
use stepscope_results::Table;
use stepscope_results::views::{Hosts, whatif};

/// Options of this view alone.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatifOptions {
    /// Change this: input=free, workers=N, prefetch=B, launch=graph, kernels=bf16, op:NAME=xK, scope:NAME=xK, comm=overlap,
    /// sync=off, python=xK or batch=xK. Several at once with commas; repeat the option to see them one by one. xK is K
    /// times as fast, xinf free.
    #[arg(long, value_name = "CHANGE", value_parser = changes)]
    change: Vec<Together>,
}

/// Changes that are made at once.
#[derive(Clone, Debug)]
struct Together(Vec<Change>);

/// Names of ops may contain commas, so a comma separates changes only if what follows is one.
fn changes(text: &str) -> Result<Together, String> {
    let mut all = Vec::new();
    let mut open = String::new();
    for part in text.split(',') {
        open.push_str(part);
        match open.parse::<Change>() {
            Ok(change) => {
                all.push(change);
                open.clear();
            }
            Err(_) => open.push(','),
        }
    }
    match open.trim_end_matches(',') {
        "" if !all.is_empty() => Ok(Together(all)),
        rest => Err(wrong(&rest.parse::<Change>().err().unwrap_or(BadChange::Unknown(rest.to_owned())))),
    }
}

fn wrong(bad: &BadChange) -> String {
    match bad {
        BadChange::Value(text) => format!("the value of `{text}` is wrong; changes are {}", FORMS.join(", ")),
        BadChange::Unknown(text) => format!("there is no change `{text}`; changes are {}", FORMS.join(", ")),
    }
}

impl WhatifOptions {
    pub(crate) fn table(self, hosts: &dyn Hosts) -> Table {
        let asked: Vec<Vec<Change>> = self.change.into_iter().map(|together| together.0).collect();
        whatif::table(hosts, &asked)
    }
}
