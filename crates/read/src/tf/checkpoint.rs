//! Checkpoints (TensorBundle): `PREFIX.index` contains the name, type, shape and location of each variable; the
//! files `PREFIX.data-00000-of-00001` contain the values.

use std::ops::Range;
use std::path::{Path, PathBuf};

use stepscope_tfgraph::{DataType, Values, Variable};

use super::crc32c::masked;
use super::graph::shape;
use super::message::{Damages, Value, Walk};
use super::{Found, kind::Kind, sstable, unless_nothing};
use crate::input::bytes_of;
use crate::{Bytes, ReadError};

/// Values of larger variables are not read: no view shows more.
const LARGEST_VALUES: u64 = 1 << 20;

/// The variables of a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    /// By name.
    pub variables: Vec<Variable>,
}

#[derive(Default)]
struct Entry {
    data_type: i64,
    dims: Vec<i64>,
    shard: i64,
    offset: u64,
    size: u64,
    checksum: u32,
}

/// Reads the checkpoint with this prefix; the path of its index or of a data file also works.
pub fn read_checkpoint(path: &Path, with_values: bool) -> Result<Found<Checkpoint>, ReadError> {
    let prefix = prefix_of(path);
    let index = with_ending(&prefix, ".index");
    let bytes = bytes_of(&index)?;
    if bytes.is_empty() {
        return Err(ReadError::Empty { path: index });
    }
    if !sstable::is_table(&bytes) {
        let wanted = Kind::CheckpointIndex.name();
        return Err(ReadError::WrongKind {
            path: index,
            wanted,
            found: super::kind_of(&bytes).map(Kind::name),
        });
    }
    let found = checkpoint_of(&bytes, with_values, &|shard, count| {
        let path = with_ending(&prefix, &format!(".data-{shard:05}-of-{count:05}"));
        bytes_of(&path).map_err(|_| path.display().to_string())
    });
    unless_nothing(&index, found.value.variables.is_empty(), found)
}

/// Opens a data file by its number and the number of files; the error names the unreadable file.
type Open<'a> = dyn Fn(i64, i64) -> Result<Bytes, String> + 'a;

/// The variables of an index; `open` returns the data files.
pub fn checkpoint_of(index: &[u8], with_values: bool, open: &Open<'_>) -> Found<Checkpoint> {
    let mut damage = Damages::default();
    let mut data = Shards { count: 1, opened: Vec::new(), open };
    let mut checkpoint = Checkpoint::default();
    sstable::each(index, &mut damage, |key, value, damage| {
        if key.is_empty() {
            data.count = shard_count(value, damage);
            return;
        }
        let entry = entry(value, damage);
        let name = String::from_utf8_lossy(key).into_owned();
        let values = if with_values { data.values(&name, &entry, damage) } else { None };
        checkpoint.variables.push(Variable {
            name,
            data_type: DataType(entry.data_type),
            shape: entry.dims,
            bytes: entry.size,
            values,
        });
    });
    Found { value: checkpoint, damage }
}

/// The prefix for a path.
fn prefix_of(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    if let Some(prefix) = text.strip_suffix(".index").or_else(|| text.strip_suffix(".meta")) {
        return PathBuf::from(prefix);
    }
    match text.rfind(".data-") {
        Some(at) if text.contains("-of-") => PathBuf::from(&text[..at]),
        _ => path.to_owned(),
    }
}

fn with_ending(prefix: &Path, ending: &str) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

/// Number of data files.
fn shard_count(value: &[u8], damage: &mut Damages) -> i64 {
    let mut walk = Walk::new(value, std::mem::take(damage));
    let mut count = 1;
    walk.message(0..value.len(), "BundleHeaderProto", |_, field| match field.number {
        1 => field.int().map(|value| count = value),
        2 => field.int().map(|_| ()),
        3 => field.range().map(|_| ()),
        _ => None,
    });
    *damage = walk.damage;
    count
}

fn entry(value: &[u8], damage: &mut Damages) -> Entry {
    let mut walk = Walk::new(value, std::mem::take(damage));
    let mut entry = Entry::default();
    walk.message(0..value.len(), "BundleEntryProto", |walk, field| match field.number {
        1 => field.int().map(|value| entry.data_type = value),
        2 => field.range().map(|range: Range<usize>| entry.dims = shape(walk, range).dims),
        3 => field.int().map(|value| entry.shard = value),
        4 => field.int().map(|value| entry.offset = value as u64),
        5 => field.int().map(|value| entry.size = value as u64),
        6 => match field.value {
            Value::Fixed(bits) => {
                entry.checksum = bits as u32;
                Some(())
            }
            _ => None,
        },
        7 => field.range().map(|_| ()),
        _ => None,
    });
    *damage = walk.damage;
    entry
}

/// The data files, opened on demand.
struct Shards<'a> {
    count: i64,
    opened: Vec<(i64, Option<Shard>)>,
    open: &'a Open<'a>,
}

/// A data file.
#[derive(Clone)]
struct Shard {
    bytes: Bytes,
    /// Bytes that no variable has claimed yet. Variables share none, so that those of an honest index never claim more than
    /// the file has, and thousands that name one place do not keep thousands of copies of it.
    unclaimed: usize,
}

impl Shards<'_> {
    fn values(&mut self, name: &str, entry: &Entry, damage: &mut Damages) -> Option<Values> {
        if entry.size > LARGEST_VALUES {
            return None;
        }
        let start = usize::try_from(entry.offset).ok()?;
        let end = start.checked_add(usize::try_from(entry.size).ok()?)?;
        let shard = self.file(entry.shard, damage)?;
        let Some(bytes) = shard.bytes.get(start..end) else {
            damage.add(start, || format!("`{name}`: its values are past the end of the data file"));
            return None;
        };
        let Some(unclaimed) = shard.unclaimed.checked_sub(bytes.len()) else {
            damage.add(start, || format!("`{name}`: its values belong to other variables, too"));
            return None;
        };
        shard.unclaimed = unclaimed;
        if masked(bytes) != entry.checksum {
            damage.add(start, || format!("`{name}`: the checksum of its values does not match"));
            return None;
        }
        decode(DataType(entry.data_type), bytes)
    }

    fn file(&mut self, shard: i64, damage: &mut Damages) -> Option<&mut Shard> {
        let known = self.opened.iter().position(|(number, _)| *number == shard);
        let place = known.unwrap_or_else(|| {
            let file = (self.open)(shard, self.count);
            if let Err(path) = &file {
                damage.add_somewhere(|| format!("the data file {path} cannot be read"));
            }
            let opened = file.ok().map(|bytes| Shard { unclaimed: bytes.len(), bytes });
            self.opened.push((shard, opened));
            self.opened.len() - 1
        });
        self.opened.get_mut(place)?.1.as_mut()
    }
}

fn decode(data_type: DataType, bytes: &[u8]) -> Option<Values> {
    fn each<const N: usize, T>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
        bytes.chunks_exact(N).filter_map(|chunk| chunk.first_chunk::<N>()).map(|chunk| from(*chunk)).collect()
    }
    Some(match data_type.name() {
        "float32" => Values::Floats(each(bytes, |b| f64::from(f32::from_le_bytes(b)))),
        "float64" => Values::Floats(each(bytes, f64::from_le_bytes)),
        "bfloat16" => Values::Floats(each(bytes, |b: [u8; 2]| {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
        })),
        "int32" => Values::Ints(each(bytes, |b| i64::from(i32::from_le_bytes(b)))),
        "int64" => Values::Ints(each(bytes, i64::from_le_bytes)),
        _ => return None,
    })
}
