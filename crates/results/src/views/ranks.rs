//! `stepscope ranks`: the processes, replicas or devices of one job side by side: own work, waiting caused and suffered, and
//! what each does more than the others.

mod map;

use serde_json::{Value, json};
use stepscope_analyze::devices::collectives::{Collectives, CollectivesPartial, RankWaiting, Waiting};
use stepscope_analyze::devices::servers::{Servers, ServersPartial};
use stepscope_analyze::job::JobPart;
use stepscope_analyze::ranks::{Ranks, RanksPartial};
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::{Analysis, Category};

use super::{Group, Hosts, View, each_host};
use crate::format::{duration_ms, percent, plural};
use crate::table::{Cell, Field, Table, columns, described};
use crate::words::terms;

pub(super) const VIEW: View = View {
    name: "ranks",
    title: "Ranks",
    group: Group::Summary,
    question: "Which rank do the others wait for, and why?",
    about: "Show the ranks of a job: own work, waiting caused and suffered, and what each does more than the others",
    after_help: "Examples:\n  \
        stepscope ranks logs/                      all ranks of the newest session\n  \
        stepscope ranks RANK0 RANK1 RANK2          files of several hosts, wherever they are\n  \
        stepscope ranks logs/ --sort caused_ms     who causes most of the waiting",
    record: &[
        "Record all processes of the job in the same steps: `stepscope capture HOST:PORT HOST:PORT …`",
        "Or let each process record itself into one log directory, and give that directory",
    ],
    events: None,
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: "
        recorded?: integer -- Ranks that were recorded and can be compared.
        world_size?: integer? -- Ranks of the job; null if no recorder says.
        collectives_per_step?: number? -- Collectives per step in which all of them take part.
        exact?: boolean? -- Whether collectives are matched by numbers, rather than by order.
        held_steps?: [held] -- The steps in which ranks wait for another, each with the rank that they wait for most.
        map?: map? -- All ranks in all steps: who waits, and who is late.
        @map
        steps: [integer] -- The step numbers.
        ranks: [string] -- The ranks.
        waiting_ms: [[number]] -- Per rank and step: how long it waits for others.
        late_ms: [[number]] -- Per rank and step: how long it arrives after the last but one.
        @held
        step: integer -- The step number.
        rank: string -- The rank.
        share: number -- The share of all waiting in the step that it causes.
        late_ms: number -- How long it arrives after the last but one.
    ",
    table: |hosts| table(&Job::of(hosts)),
    groupings: &[],
};

/// One rank, or a process that serves ranks.
#[derive(Debug)]
pub struct Line {
    /// Its name.
    pub rank: String,
    /// Its host.
    pub host: String,
    /// Its part in the job, if the recording says.
    pub part: Option<String>,
    /// Milliseconds per step of its own work; `None` if it shares its process.
    pub own_ms: Option<f64>,
    /// Where it meets others; `None` if it cannot be compared.
    pub waiting: Option<RankWaiting>,
    /// Milliseconds per step by category.
    pub breakdown: Vec<(Category, f64)>,
    /// What it does more than the others, in milliseconds per step.
    pub differs: Option<(String, f64)>,
}

fn columns() -> Vec<Field<Line>> {
    columns! { line: Line;
        rank.known: Name "rank", "the process, replica or device" => line.rank.as_str();
        host.known.hidden: Text "host", "its host" => line.host.as_str();
        part.optional: Text "part", "its part in the job" => line.part.clone();
        own_ms: Ms "own work", "own work per step, without waiting for others" => line.own_ms;
        waiting_ms: Ms "waits", "waiting for others per step, in collectives" => line.of(|waiting| waiting.waiting_ms);
        caused_ms: Ms "causes", "waiting of all others for it, per step" => line.of(|waiting| waiting.caused_ms);
        leads_fraction: Percent "in steps", "share of the steps in which the others wait longest for it" => line.of(|waiting| waiting.leads);
        late_ms: Ms "late", "arrival after the last but one, per step" => line.of(|waiting| waiting.late_ms);
        transfer_ms.optional: Ms "transfer", "collectives after the last rank arrived, per step" => line.of(|waiting| waiting.transfer_ms);
        setup_ms.optional: Ms "set-up", "setting up collectives, per step; part of waiting and transfer" => line.of(|waiting| waiting.setup_ms);
        last_fraction.hidden: Percent "last at", "share of collectives at which it arrives last" => line.of(|waiting| waiting.last);
        differs: Name "does more", "what it does more than the median of the others" => line.differs.as_ref().map(|(what, _)| what.as_str());
        differs_ms.optional: Ms "by", "how much more, per step" => line.differs.as_ref().map(|(_, ms)| *ms);
        breakdown.hidden: Map "breakdown", "milliseconds per step and category; categories without time are left out" => Cell::named(line.breakdown.iter().map(|(owner, ms)| (owner.key(), *ms)));
    }
}

impl Line {
    fn of(&self, figure: impl Fn(&RankWaiting) -> f64) -> Option<f64> {
        self.waiting.as_ref().map(figure)
    }
}

/// All that the hosts of a job say about its ranks.
#[derive(Debug)]
pub struct Job {
    hosts: Vec<HostSummary>,
    collectives: Collectives,
    ranks: Ranks,
    servers: Option<Servers>,
}

impl Job {
    /// One visit of all hosts.
    pub fn of(hosts: &dyn Hosts) -> Self {
        let parts = each_host(hosts, |context| {
            let (collectives, ranks) = (CollectivesPartial::of(context), RanksPartial::of(context));
            // Samples of the hardware and snapshots of memory are no processes.
            let summary = (context.trace.events() > 0).then(|| HostSummary::of(context));
            (summary, collectives, ranks, ServersPartial::of(context))
        });
        let mut all = (CollectivesPartial::default(), RanksPartial::default(), ServersPartial::default());
        let mut summaries = Vec::new();
        for (summary, collectives, ranks, servers) in parts {
            summaries.extend(summary);
            all.0.merge(collectives);
            all.1.merge(ranks);
            all.2.merge(servers);
        }
        let (collectives, ranks, servers) = all;
        Job {
            hosts: summaries,
            collectives: collectives.finish(),
            ranks: ranks.finish(),
            servers: servers.finish(),
        }
    }

    /// The ranks, and the processes that serve them.
    pub fn lines(&self) -> Vec<Line> {
        let compared = self.collectives.waiting.as_ref().map_or(&[][..], |waiting| &waiting.ranks);
        let mut lines: Vec<Line> = compared.iter().map(|rank| self.compared(rank)).collect();
        for host in &self.hosts {
            if !compared.iter().any(|rank| rank.host == host.host) {
                lines.push(self.alone(host));
            }
        }
        lines
    }

    fn compared(&self, rank: &RankWaiting) -> Line {
        let host = self.hosts.iter().find(|host| host.host == rank.host);
        let host = host.filter(|_| rank.inside.is_empty() && !self.on_devices());
        let work = self.ranks.differences(&rank.host, &rank.inside);
        let work = work.into_iter().next().map(|first| (first.name.clone(), first.more_ms()));
        Line {
            rank: rank.name.clone(),
            host: rank.host.clone(),
            part: host.and_then(|host| host.part).map(terms::job_part),
            own_ms: host.map(HostSummary::own_work_ms),
            waiting: Some(rank.clone()),
            breakdown: host.map_or_else(Vec::new, per_step),
            differs: work
                .into_iter()
                .chain(host.and_then(|host| self.category(host)))
                .max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    }

    fn alone(&self, host: &HostSummary) -> Line {
        let trains = host.trains() && !host.whole_capture;
        Line {
            rank: host.host.clone(),
            host: host.host.clone(),
            part: host.part.map(terms::job_part),
            own_ms: trains.then(|| host.own_work_ms()),
            waiting: None,
            breakdown: if trains { per_step(host) } else { Vec::new() },
            differs: self.category(host).filter(|_| trains),
        }
    }

    fn on_devices(&self) -> bool {
        self.collectives.waiting.as_ref().is_some_and(|waiting| !waiting.on_host)
    }

    /// The category in which a host spends more than the median of the others.
    fn category(&self, host: &HostSummary) -> Option<(String, f64)> {
        const OWN: [Category; 8] = [
            Category::Compute,
            Category::Input,
            Category::Python,
            Category::Dispatch,
            Category::Output,
            Category::Launch,
            Category::Tracing,
            Category::Compile,
        ];
        let spent = |host: &HostSummary, wanted: Category| {
            per_step(host).into_iter().find(|(owner, _)| *owner == wanted).map_or(0.0, |(_, ms)| ms)
        };
        let others: Vec<&HostSummary> =
            self.hosts.iter().filter(|other| other.host != host.host && other.trains()).collect();
        let more = |category: Category| {
            let mut usual: Vec<f64> = others.iter().map(|other| spent(other, category)).collect();
            usual.sort_by(f64::total_cmp);
            let usual = stepscope_trace::statistics::quantile(&usual, 0.5)?;
            Some((category.key().to_owned(), spent(host, category) - usual))
        };
        OWN.into_iter().filter_map(more).filter(|(_, ms)| *ms > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Milliseconds per step and category.
fn per_step(host: &HostSummary) -> Vec<(Category, f64)> {
    let steps = host.counted().count().max(1) as f64;
    let mut shares = stepscope_analyze::Shares::default();
    host.counted().for_each(|step| shares.add_all(&step.shares));
    shares.owners().map(|(owner, time)| (owner, time.ms() / steps)).collect()
}

fn table(job: &Job) -> Table {
    let lines = job.lines();
    let mut table = Table::of("ranks", &columns(), &lines);
    table.headline = Some(headline(job, &lines));
    let waiting = job.collectives.waiting.as_ref();
    table.member("recorded", job.collectives.recorded);
    table.member("world_size", job.collectives.world_size);
    table.member("collectives_per_step", waiting.map(|waiting| waiting.collectives_per_step));
    table.member("exact", waiting.map(|waiting| waiting.exact));
    table.member("held_steps", waiting.map_or_else(Vec::new, held_steps));
    table.member("map", waiting.map(map::member));
    if waiting.is_none() {
        table.hide(&["waiting_ms", "caused_ms", "leads_fraction", "late_ms"]);
    }
    notes(job, &mut table);
    table
}

/// Who is late in which step.
fn held_steps(waiting: &Waiting) -> Vec<Value> {
    let held = waiting.steps.iter().filter_map(|step| {
        let rank = &waiting.ranks.get(step.rank)?.name;
        Some(json!({"step": step.number, "rank": rank, "share": step.share, "late_ms": step.late_ms}))
    });
    held.collect()
}

fn headline(job: &Job, lines: &[Line]) -> String {
    let Some(waiting) = &job.collectives.waiting else {
        return match &job.servers {
            Some(servers) => format!(
                "workers wait {} per step for tensors of parameter servers, hidden or not",
                duration_ms(servers.waited_ms)
            ),
            None if lines.len() > 1 => {
                format!("{} processes; they share no collectives that can be compared", lines.len())
            }
            None => "one process without ranks to compare".to_owned(),
        };
    };
    let all = plural(waiting.ranks.len() as u64, "rank", "ranks");
    match waiting.holder() {
        Some(rank) if waiting.waiting_ms() > 0.0 => format!(
            "{all}: each waits {} per step on average; {} of that is for {}",
            duration_ms(waiting.waiting_ms()),
            percent(waiting.caused_by(rank)),
            rank.name
        ),
        _ => format!("{all}: none waits for another"),
    }
}

fn notes(job: &Job, table: &mut Table) {
    if let Some(waiting) = &job.collectives.waiting {
        table.note(format!(
            "{} per step in which all ranks take part, matched by {}.",
            plural(waiting.collectives_per_step.round() as u64, "collective", "collectives"),
            if waiting.exact { "the numbers that the recorder gives them" } else { "order and size" }
        ));
        if let Some(clocks) = waiting.clocks {
            table.note(format!(
                "Clocks of hosts are aligned at the ends of {}, ±{}.",
                plural(clocks.matched as u64, "common collective", "common collectives"),
                duration_ms(clocks.spread_ms)
            ));
        }
    }
    job.collectives.waiting.iter().flat_map(map::chart).for_each(|line| table.note(line));
    if let Some(all) = job.collectives.world_size.filter(|all| *all > job.collectives.recorded as u64) {
        let recorded = job.collectives.recorded.max(1);
        table.note(format!(
            "{recorded} of {all} ranks {} recorded: waiting for another one looks like transfer.",
            if recorded == 1 { "was" } else { "were" }
        ));
    }
    for server in job.servers.iter().flat_map(|servers| &servers.servers) {
        table.note(format!(
            "{}: {} of pulls and {} of pushes per step of a worker.",
            terms::job_part(JobPart::Server(server.task)),
            duration_ms(server.pull_ms),
            duration_ms(server.push_ms)
        ));
    }
}
