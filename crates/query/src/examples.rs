//! Queries that are worth having at hand. Each runs on every recording; tables without rows give none.

/// A query and what it answers.
#[derive(Copy, Clone, Debug)]
pub struct Example {
    /// What it answers.
    pub question: &'static str,
    /// The query.
    pub sql: &'static str,
}

/// All examples.
pub const EXAMPLES: &[Example] = &[
    Example {
        question: "Which names take the most time of their own?",
        sql: "SELECT name, count(*) AS count, ms(sum(self_dur)) AS self_ms\nFROM event GROUP BY name ORDER BY self_ms DESC LIMIT 20",
    },
    Example {
        question: "What does the slowest step compute?",
        sql: "SELECT op, count(*) AS count, ms(sum(dur)) AS ms FROM event\nWHERE step = (SELECT number FROM step ORDER BY dur DESC LIMIT 1) AND state = 'compute'\nGROUP BY op ORDER BY ms DESC LIMIT 20",
    },
    Example {
        question: "Where does each step's time go?",
        sql: "SELECT step, category, ms(dur) AS ms FROM breakdown\nWHERE bottleneck = 1 AND counted = 1 ORDER BY step, ms DESC LIMIT 200",
    },
    Example {
        question: "Does waiting for input grow from step to step?",
        sql: "SELECT step, ms(dur) AS input_ms FROM breakdown\nWHERE category = 'input' AND bottleneck = 1 ORDER BY step",
    },
    Example {
        question: "Which gaps are longest on the busiest track?",
        sql: "SELECT id, name, ms(ts) AS at_ms, ms(lead(ts) OVER (ORDER BY ts) - ts - dur) AS gap_ms FROM event\nWHERE depth = 0 AND track_id = (SELECT id FROM track ORDER BY events DESC LIMIT 1)\nORDER BY gap_ms DESC LIMIT 20",
    },
    Example {
        question: "Which kernels wait longest between launch and start?",
        sql: "SELECT e.op, count(*) AS count, ms(avg(l.delay)) AS mean_ms, ms(max(l.delay)) AS max_ms\nFROM launch l JOIN event e ON e.id = l.work_event GROUP BY e.op ORDER BY mean_ms DESC LIMIT 20",
    },
    Example {
        question: "Where is the host blocked on a device?",
        sql: "SELECT p.name AS inside, e.name AS call, count(*) AS count, ms(sum(e.dur)) AS ms\nFROM event e LEFT JOIN event p ON p.id = e.parent_id WHERE e.state = 'sync'\nGROUP BY p.name, e.name ORDER BY ms DESC LIMIT 20",
    },
    Example {
        question: "How fast are copies to the device?",
        sql: "SELECT name, count(*) AS count, sum(arg(id, 'bytes')) AS bytes, sum(arg(id, 'bytes')) * 1.0 / sum(dur) AS gb_per_s\nFROM event WHERE role = 'copy' GROUP BY name ORDER BY bytes DESC",
    },
    Example {
        question: "Which ops are unsteady?",
        sql: "SELECT op, count(*) AS count, ms(avg(dur)) AS mean_ms, max(dur) * 1.0 / avg(dur) AS ratio\nFROM event WHERE op IS NOT NULL GROUP BY op HAVING count(*) > 9 ORDER BY ratio DESC LIMIT 20",
    },
    Example {
        question: "Which rank do the others wait for?",
        sql: "SELECT rank, wait_ms, transfer_ms, last FROM collective ORDER BY wait_ms",
    },
    Example {
        question: "Which stage of the input pipeline is slow?",
        sql: "SELECT name, self_ms, parallelism, runs_python FROM input_stage ORDER BY self_ms DESC LIMIT 20",
    },
    Example {
        question: "What was recorded with arguments like these?",
        sql: "SELECT e.id, e.name, a.key, a.value FROM (SELECT id, name FROM event ORDER BY dur DESC LIMIT 10) e\nJOIN arg a ON a.event_id = e.id LIMIT 100",
    },
];
