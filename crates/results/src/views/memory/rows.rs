//! What an allocator held at a moment, as rows: by op as recorded, or combined by line, op, role, or not at all.

use std::collections::BTreeMap;

use stepscope_analyze::memory::{HeldAt, Live};
use stepscope_trace::memory::Role;

use crate::table::{Field, Table, columns};

/// How rows are combined.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// As recorded: equal blocks of an op.
    Recorded,
    /// By the line of the user's program.
    Line,
    /// By the innermost call, or the op.
    Op,
    /// By what memory is for.
    Role,
    /// Single blocks.
    Block,
}

/// Blocks of which nothing is known.
const UNKNOWN: &str = "unknown";

/// One row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    host: String,
    allocator: String,
    line: Option<String>,
    op: Option<String>,
    role: Option<&'static str>,
    bytes: i64,
    /// In use at that moment.
    of: i64,
    blocks: Option<u64>,
    requested: Option<i64>,
    shape: Option<String>,
    data_type: Option<String>,
    region: Option<String>,
    older: bool,
    address: Option<String>,
    born_ms: Option<f64>,
    /// The largest part, which gives the row its role.
    largest: i64,
}

impl Row {
    fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.bytes as f64 / self.of as f64)
    }
}

pub(super) fn columns() -> Vec<Field<Row>> {
    columns! { row: Row;
        host.known.hidden: Text "host", "the host" => row.host.as_str();
        allocator.known: Text "allocator", "the allocator" => row.allocator.as_str();
        line.optional: Name "line", "the line of the program that allocated it, if recorded; else the op, or who holds it" => row.line.clone();
        op: Name "live at peak", "the op or the call that allocated it" => row.op.clone();
        role.optional: Text "role", "what it is for, if known" => row.role;
        bytes.known: Bytes "size", "size" => row.bytes;
        fraction: Percent "share", "share of what was in use" => row.share();
        blocks: Count "blocks", "number of blocks" => row.blocks;
        shape.optional: Text "shape", "shape of the tensor" => row.shape.clone();
        data_type.optional: Text "type", "type of its elements" => row.data_type.clone();
        region.optional: Text "region", "kind of memory" => row.region.clone();
        requested_bytes.hidden: Bytes "requested", "size as requested" => row.requested;
        before_capture.hidden: Flag "before the capture", "it was allocated before the capture" => row.older;
        address.optional.not_in_sql: Text "address", "where it lies (--by block)" => row.address.clone();
        born_ms.optional.not_in_sql: Ms "allocated", "when it was allocated (--by block)" => row.born_ms;
        share.hidden.not_in_sql: Percent "share", "the same as fraction" => row.share();
    }
}

/// The table of all rows, with the columns that suit the way in which they are combined.
pub(super) fn table(held: &[HeldAt], by: By) -> Table {
    let rows: Vec<Row> = held.iter().flat_map(|held| rows(held, by)).collect();
    let mut table = Table::of("memory", &columns(), &rows);
    let tensor = ["shape", "data_type", "region"];
    let block = ["address", "born_ms"];
    if by != By::Recorded {
        table.hide(&tensor);
    }
    if by != By::Block {
        table.hide(&block);
    }
    match by {
        By::Recorded => table.hide(&["line", "role"]),
        By::Line | By::Block => table.hide(&["op"]),
        By::Op => {
            table.hide(&["line"]);
            table.entitle("op", "op");
        }
        By::Role => table.hide(&["line", "op"]),
    }
    table.top = Some(20);
    table
}

fn rows(held: &HeldAt, by: By) -> Vec<Row> {
    let start =
        || Row { host: held.host.clone(), allocator: held.name.clone(), of: held.in_use, ..Row::default() };
    if by == By::Block && !held.blocks.is_empty() {
        return blocks(held, start);
    }
    let sum = |name: String, bytes: i64, older: bool| Row {
        line: Some(name.clone()),
        op: Some(name),
        bytes,
        older,
        ..start()
    };
    let mut whole = Vec::new();
    if held.reserved_by_programs > 0 {
        whole.push(sum(reserved_label(held.program.as_deref()), held.reserved_by_programs, false));
    }
    if held.before_capture > 0 {
        whole.push(sum(BEFORE.to_owned(), held.before_capture, true));
    }
    if by == By::Recorded {
        whole.extend(held.rows.iter().map(|live| Row { bytes: 0, blocks: None, ..start() }.with(live)));
        return whole;
    }
    let mut combined: BTreeMap<String, Row> = BTreeMap::new();
    for live in &held.rows {
        let name = name_of(live, by);
        let row = combined.remove(&name).unwrap_or_else(start);
        combined.insert(name.clone(), row.combined(live, &name, by));
    }
    whole.extend(combined.into_values());
    whole.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| (&a.line, &a.op).cmp(&(&b.line, &b.op))));
    whole
}

fn name_of(live: &Live, by: By) -> String {
    let op = Some(live.op.clone()).filter(|op| !op.is_empty());
    let name = match by {
        By::Recorded | By::Line | By::Block => live.line.clone().or(op),
        By::Op => op.or_else(|| live.line.clone()),
        By::Role => Some(live.role.map_or(UNKNOWN, Role::key).to_owned()),
    };
    // What has a role but no line was there before.
    name.unwrap_or_else(|| if live.role.is_some() { BEFORE.to_owned() } else { UNKNOWN.to_owned() })
}

impl Row {
    /// The row with a live one added.
    fn combined(mut self, live: &Live, name: &str, by: By) -> Self {
        self = self.with(live);
        match by {
            By::Op => self.op = Some(name.to_owned()),
            By::Role => {
                (self.line, self.op, self.role) = (None, None, Some(live.role.map_or(UNKNOWN, Role::key)));
            }
            By::Recorded | By::Line | By::Block => self.line = Some(name.to_owned()),
        }
        (self.shape, self.data_type, self.region) = (None, None, None);
        self
    }

    fn with(mut self, live: &Live) -> Self {
        if live.bytes >= self.largest {
            (self.largest, self.role) = (live.bytes, live.role.map(Role::key).or(self.role));
        }
        self.bytes = self.bytes.saturating_add(live.bytes);
        if live.blocks > 0 {
            self.blocks = Some(self.blocks.unwrap_or(0) + live.blocks);
        }
        let requested = live.requested.map(|more| self.requested.unwrap_or(0).saturating_add(more));
        self.requested = requested.or(self.requested);
        self.line = self.line.or_else(|| live.line.clone());
        let op = if live.op.is_empty() { UNKNOWN } else { live.op.as_str() };
        self.op = self.op.or_else(|| Some(op.to_owned()));
        (self.shape, self.data_type) = (live.shape.clone(), live.data_type.clone());
        self.region = live.region.clone();
        self
    }
}

fn blocks(held: &HeldAt, start: impl Fn() -> Row) -> Vec<Row> {
    let row = |block: &stepscope_analyze::memory::BlockRow| Row {
        line: Some(block.line.clone().unwrap_or_else(|| BEFORE.to_owned())),
        role: block.role.map(Role::key),
        bytes: i64::try_from(block.bytes).unwrap_or(i64::MAX),
        blocks: Some(block.count),
        requested: i64::try_from(block.requested).ok(),
        older: block.line.is_none(),
        address: (block.address > 0).then(|| format!("{:#x}", block.address)),
        born_ms: block.born.map(|time| time.ms()),
        ..start()
    };
    held.blocks.iter().map(row).collect()
}

/// The row of what is older than the recording.
pub(super) const BEFORE: &str = "allocated before the capture";

/// The row of what programs reserve.
pub(super) fn reserved_label(program: Option<&str>) -> String {
    let program = program.map_or("running programs".to_owned(), |name| format!("`{name}`"));
    format!("reserved by {program}")
}
