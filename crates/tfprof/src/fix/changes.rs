//! What a view of the corrected profile shows otherwise than the same view of the profile as it is.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::Fixed;
use crate::display::in_order;
use crate::measures::Measures;
use crate::numbers;
use crate::options::Column;
use crate::rows::Row;
use crate::text::input_shapes;
use crate::view::{Shown, View};

/// Rows that the text lists; programs get all.
const LISTED: usize = 20;

/// What changed in a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Row by row, the largest first; the whole view before all.
    pub rows: Vec<Change>,
    /// The reasons, in words, with their names for programs.
    reasons: Vec<(&'static str, String, Vec<String>)>,
}

/// What changed in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The row.
    pub name: String,
    /// Its cells that changed.
    pub cells: Vec<ChangedCell>,
}

/// A cell that changed. A row that is not shown on one side has nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedCell {
    /// The column.
    pub column: &'static str,
    /// What tfprof shows.
    pub before: Option<Amount>,
    /// What is right.
    pub after: Option<Amount>,
}

/// A value of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Count(i64),
    /// A time in µs.
    Micros(i64),
    /// An amount of memory.
    Bytes(i64),
    /// A text.
    Text(String),
}

impl Amount {
    fn text(&self) -> String {
        match self {
            Amount::Count(value) => numbers::count(*value),
            Amount::Micros(value) => numbers::time(*value),
            Amount::Bytes(value) => numbers::bytes(*value),
            Amount::Text(text) => text.clone(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Amount::Count(value) | Amount::Micros(value) | Amount::Bytes(value) => (*value).into(),
            Amount::Text(text) => text.as_str().into(),
        }
    }

    fn number(&self) -> i64 {
        match self {
            Amount::Count(value) | Amount::Micros(value) | Amount::Bytes(value) => *value,
            Amount::Text(_) => 0,
        }
    }
}

/// The cells of a row, in the order of their columns.
type Cells = Vec<(&'static str, Amount)>;

impl Changes {
    /// Compares two views that differ in the profile only.
    pub fn between(before: &Shown<'_>, after: &Shown<'_>, fixed: &Fixed) -> Self {
        let (old, new) = (Side::of(before), Side::of(after));
        let mut rows = Vec::new();
        for row in &new.rows {
            let was = old.by_key.get(&row.key).and_then(|&at| old.rows.get(at));
            rows.extend(change(&row.name, was.map(|was| &was.cells), Some(&row.cells)).map(|it| (row, it)));
        }
        let gone = old.rows.iter().filter(|row| !new.by_key.contains_key(&row.key));
        rows.extend(gone.filter_map(|row| Some((row, change(&row.name, Some(&row.cells), None)?))));
        // A row above only passes on what changed below it.
        let passed_on: HashSet<u64> = rows.iter().filter_map(|(row, _)| row.above).collect();
        let mut kept: Vec<Change> = rows
            .into_iter()
            .filter(|(row, _)| !passed_on.contains(&row.key))
            .map(|(_, change)| change)
            .collect();
        kept.sort_by_key(|change| std::cmp::Reverse(change.size()));
        let whole = change("whole view", Some(&old.whole), Some(&new.whole));
        let rows = whole.into_iter().chain(kept).collect();
        let reasons = fixed.reasons_for(after.options);
        let reasons =
            reasons.map(|reason| (reason.kind.key(), reason.text(), reason.nodes.clone())).collect();
        Changes { rows, reasons }
    }

    /// The list behind the table.
    pub fn text(&self) -> String {
        if self.rows.is_empty() {
            return "\nChanged by --fix: nothing in this view\n".to_owned();
        }
        let mut out = "\nChanged by --fix:\n".to_owned();
        for Change { name, cells } in self.rows.iter().take(LISTED) {
            let value =
                |amount: &Option<Amount>| amount.as_ref().map_or("not shown".to_owned(), Amount::text);
            let cell = |cell: &ChangedCell| {
                format!("{} {} -> {}", cell.column, value(&cell.before), value(&cell.after))
            };
            let cells: Vec<String> = cells.iter().map(cell).collect();
            out += &format!("  {name}: {}\n", cells.join(", "));
        }
        match self.rows.len().saturating_sub(LISTED) {
            0 => {}
            1 => out += "  and 1 more row\n",
            more => out += &format!("  and {more} more rows\n"),
        }
        if !self.reasons.is_empty() {
            out += "Because:\n";
            self.reasons.iter().for_each(|(_, text, _)| out += &format!("  {text}\n"));
        }
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let value = |amount: &Option<Amount>| amount.as_ref().map_or(Value::Null, Amount::json);
        let cell = |name: &str, cell: &ChangedCell| json!({"name": name, "column": cell.column, "before": value(&cell.before), "after": value(&cell.after)});
        let rows = self.rows.iter().flat_map(|row| row.cells.iter().map(|it| cell(&row.name, it)));
        let reasons = self
            .reasons
            .iter()
            .map(|(key, text, nodes)| json!({"reason": key, "text": text, "nodes": nodes}));
        json!({"changed": rows.collect::<Vec<_>>(), "reasons": reasons.collect::<Vec<_>>()})
    }
}

impl Change {
    /// By how much its first number changed.
    fn size(&self) -> u64 {
        let number = |amount: &Option<Amount>| amount.as_ref().map_or(0, Amount::number);
        self.cells.first().map_or(0, |cell| number(&cell.before).abs_diff(number(&cell.after)))
    }
}

fn change(name: &str, before: Option<&Cells>, after: Option<&Cells>) -> Option<Change> {
    let columns = after.or(before)?.iter().map(|(column, _)| *column);
    let cell = |column: &'static str| {
        let of =
            |cells: &Cells| cells.iter().find(|(name, _)| *name == column).map(|(_, amount)| amount.clone());
        let [before, after] = [before, after].map(|side| side.and_then(of));
        let empty = |amount: &Option<Amount>| amount.as_ref().is_none_or(|it| it.number() == 0);
        // That a row without a value comes or goes says nothing.
        let says =
            before != after && !(before.is_none() != after.is_none() && empty(&before) && empty(&after));
        says.then_some(ChangedCell { column, before, after })
    };
    let cells: Vec<ChangedCell> = columns.filter_map(cell).collect();
    (!cells.is_empty()).then(|| Change { name: name.to_owned(), cells })
}

/// One row of one side.
struct SideRow {
    key: u64,
    /// The row above it.
    above: Option<u64>,
    name: String,
    cells: Cells,
}

/// The shown rows of one side.
struct Side {
    rows: Vec<SideRow>,
    by_key: HashMap<u64, usize>,
    whole: Cells,
}

impl Side {
    fn of(shown: &Shown<'_>) -> Self {
        let mut keys: HashMap<usize, u64> = HashMap::from([(shown.root, 0)]);
        let (mut rows, mut by_key) = (Vec::new(), HashMap::new());
        let order = in_order(&shown.rows, shown.root);
        let mut above: HashMap<usize, usize> = HashMap::new();
        for &at in &order {
            shown.rows[at].shown.iter().for_each(|&child| {
                above.insert(child, at);
            });
            if at == shown.root {
                continue;
            }
            let parent = above.get(&at).copied().filter(|parent| *parent != shown.root);
            let row = &shown.rows[at];
            // One line of code can stand below several others; names of nodes are unique.
            let path = if shown.view == View::Code { parent.and_then(|it| keys.get(&it)) } else { None };
            let key = hash(path.copied(), &row.name);
            keys.insert(at, key);
            by_key.insert(key, rows.len());
            let above = parent.and_then(|parent| keys.get(&parent).copied());
            rows.push(SideRow { key, above, name: row.name.clone(), cells: cells(shown, row) });
        }
        let whole = amounts(shown, &shown.rows[shown.root].total);
        Side { rows, by_key, whole }
    }
}

fn hash(path: Option<u64>, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, name).hash(&mut hasher);
    hasher.finish()
}

/// What a row shows: totals, but own values where totals are those of the list below.
fn cells(shown: &Shown<'_>, row: &Row) -> Cells {
    let measures = if shown.view == View::Op { &row.own } else { &row.total };
    let mut cells = amounts(shown, measures);
    if shown.options.shows(Column::InputShapes)
        && let Some(node) = row.node(shown.profile)
    {
        let shapes = input_shapes(&shown.profile.input_shapes(node)).join("|");
        cells.push((Column::InputShapes.name(), Amount::Text(shapes)));
    }
    cells
}

/// The selected columns that are numbers.
fn amounts(shown: &Shown<'_>, of: &Measures) -> Cells {
    let all = shown.options.shows(Column::Micros);
    let candidates = [
        (Column::Micros, false, Amount::Micros(of.exec_micros)),
        (Column::AcceleratorMicros, all, Amount::Micros(of.accelerator_micros)),
        (Column::CpuMicros, all, Amount::Micros(of.cpu_micros)),
        (Column::FloatOps, false, Amount::Count(of.float_ops)),
        (Column::Params, false, Amount::Count(of.parameters)),
        (Column::Bytes, false, Amount::Bytes(of.requested_bytes)),
        (Column::PeakBytes, false, Amount::Bytes(of.peak_bytes)),
        (Column::ResidualBytes, false, Amount::Bytes(of.residual_bytes)),
        (Column::OutputBytes, false, Amount::Bytes(of.output_bytes)),
        (Column::Occurrence, false, Amount::Count(of.runs)),
    ];
    let shown = candidates.into_iter().filter(|(column, also, _)| *also || shown.options.shows(*column));
    shown.map(|(column, _, amount)| (column.name(), amount)).collect()
}
