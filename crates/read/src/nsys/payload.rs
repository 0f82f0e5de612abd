//! Payloads of NVTX ranges with a schema. NCCL writes message sizes, ranks and communicators this way.
//!
//! Exports contain them as bytes (`nsys export --include-blobs=true`): a 32-byte header with domain, schema and
//! length, then the fields at the positions given in the schema. Only flat numbers are read; the rest is
//! ignored.
//!
//! By hand, because the layout is the recording's own: it comes with the schema in the file.

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, StrId};

use super::Import;

const ENTRIES: &str = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
/// Bytes before the payload.
const HEAD: usize = 32;
/// Maximum number of fields read per schema; NCCL's have four.
const FIELDS: usize = 64;

/// A field of a schema: its name as an argument key, its type, and its position.
struct Field {
    key: StrId,
    sort: i64,
    offset: usize,
}

/// The schemas of an export, by domain and number.
#[derive(Default)]
pub(super) struct Schemas(FxHashMap<(i64, i64), Vec<Field>>);

impl Schemas {
    /// Reads the schemas of the export.
    pub fn read(import: &mut Import) -> Self {
        let mut schemas = Schemas::default();
        let columns = ["domainId", "schemaId", "type", "name", "offset"];
        let outcome = import.database.rows(ENTRIES, &columns, |row| {
            let (Some(domain), Some(schema), Some(sort)) = (row.int(0), row.int(1), row.int(2)) else {
                return;
            };
            let (Some(name), offset) = (row.text(3), row.int(4).unwrap_or(0)) else { return };
            let fields = schemas.0.entry((domain, schema)).or_default();
            let known = usize::try_from(offset).ok().filter(|_| width(sort).is_some());
            if let Some(offset) = known.filter(|_| fields.len() < FIELDS && !name.is_empty()) {
                fields.push(Field { key: import.builder.strings.intern(&name), sort, offset });
            }
        });
        import.settle(ENTRIES, outcome);
        schemas
    }

    /// Whether there are no schemas.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields of a payload.
    pub fn fields<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = (StrId, Datum)> + 'a {
        let number = |from: usize| bytes.get(from..).and_then(|rest| rest.first_chunk::<4>());
        let head = number(0).zip(number(8)).map(|(domain, schema)| {
            (i64::from(u32::from_le_bytes(*domain)), i64::from(u32::from_le_bytes(*schema)))
        });
        let fields = head.and_then(|head| self.0.get(&head)).map_or(&[][..], Vec::as_slice);
        let payload = bytes.get(HEAD..).unwrap_or_default();
        fields.iter().filter_map(move |field| Some((field.key, value(field, payload)?)))
    }
}

/// Size of a type in bytes and whether it is signed, by NVTX's numbers; `None` if it is not a number.
fn width(sort: i64) -> Option<(usize, bool)> {
    Some(match sort {
        1 | 11 => (1, true),
        2 | 12 | 32 => (1, false),
        3 | 13 => (2, true),
        4 | 14 => (2, false),
        5 | 15 => (4, true),
        6 | 16 => (4, false),
        7 | 9 | 17 => (8, true),
        8 | 10 | 18 | 22 | 23 => (8, false),
        FLOAT => (4, true),
        DOUBLE => (8, true),
        _ => return None,
    })
}

const FLOAT: i64 = 19;
const DOUBLE: i64 = 20;

fn value(field: &Field, payload: &[u8]) -> Option<Datum> {
    let (width, signed) = width(field.sort)?;
    let bytes = payload.get(field.offset..)?.get(..width)?;
    let mut raw = [0; 8];
    raw.get_mut(..width)?.copy_from_slice(bytes);
    let whole = u64::from_le_bytes(raw);
    Some(match field.sort {
        FLOAT => Datum::Float(f64::from(f32::from_bits(whole as u32))),
        DOUBLE => Datum::Float(f64::from_bits(whole)),
        _ if signed => {
            // The sign is the highest bit of the field, not of the number.
            let unused = 64 - 8 * width as u32;
            Datum::Int((whole << unused) as i64 >> unused)
        }
        _ => Datum::UInt(whole),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas(fields: Vec<Field>) -> Schemas {
        Schemas([((1, 16_777_218), fields)].into_iter().collect())
    }

    fn bytes(schema: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [1, 0, schema, 0] {
            bytes.extend(u32::to_le_bytes(word));
        }
        for word in [payload.len() as u64, 32 + payload.len() as u64] {
            bytes.extend(u64::to_le_bytes(word));
        }
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn fields_lie_where_the_schema_says() {
        let key = StrId::default();
        let field = |sort, offset| Field { key, sort, offset };
        let schemas = schemas(vec![field(18, 0), field(5, 8), field(19, 12), field(18, 16), field(99, 0)]);
        let mut payload = 7_000_000_000_u64.to_le_bytes().to_vec();
        payload.extend((-3_i32).to_le_bytes());
        payload.extend(1.5_f32.to_le_bytes());
        let whole = bytes(16_777_218, &payload);
        let values: Vec<Datum> = schemas.fields(&whole).map(|(_, value)| value).collect();
        // The fourth lies beyond the end, the fifth is no number.
        assert_eq!(values, [Datum::UInt(7_000_000_000), Datum::Int(-3), Datum::Float(1.5)]);
        assert_eq!(schemas.fields(&bytes(5, &payload)).count(), 0, "another schema");
        for cut in 0..whole.len() {
            assert!(schemas.fields(&whole[..cut]).count() <= 3);
        }
    }
}
