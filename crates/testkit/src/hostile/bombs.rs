//! Files of a few kilobytes that claim gigabytes.

/// Size of a page in bytes.
const PAGE: usize = 4_096;

/// An SQLite export whose pages are shared: every inner page refers to one other page hundreds of times, so that four
/// levels claim more than ten thousand million rows.
pub fn shared_pages() -> Vec<u8> {
    let leaf_row = row(&[1, 2, 1, 1, 1], &[0x09, 0x01, 0x02, 0x01, 0x07, 0x01]);
    database(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER,end INTEGER,globalTid INTEGER,correlationId INTEGER,\
         nameId INTEGER)",
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        vec![inner(3), inner(4), inner(5), leaf((0..200_u8).map(|id| cell(id, &leaf_row)))],
    )
}

/// An SQLite export in which a text goes on in a page that follows itself: each of its rows claims 15 MB.
pub fn page_that_follows_itself() -> Vec<u8> {
    /// What stands in the row itself, if the rest fills whole pages.
    const LOCAL: usize = (PAGE - 12) * 32 / 255 - 23;
    const PAYLOAD: usize = LOCAL + 3_843 * (PAGE - 4);
    /// Its own length, the id (which is the row's number), and the text's length.
    const HEADER: usize = 6;
    let header = [&[HEADER as u8, 0][..], &varint(((PAYLOAD - HEADER) * 2 + 13) as u64)].concat();
    let cells = (0..7_u8).map(|id| {
        let mut cell = [varint(PAYLOAD as u64), vec![id + 1], header.clone()].concat();
        cell.resize(cell.len() + LOCAL - HEADER, b'a' + id);
        // The rest is in page 3.
        cell.extend(3_u32.to_be_bytes());
        cell
    });
    let mut overflow = 3_u32.to_be_bytes().to_vec();
    overflow.resize(PAGE, b'x');
    database(
        "CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY,value TEXT NOT NULL)",
        "StringIds",
        vec![leaf(cells), overflow],
    )
}

/// A database with one table whose root is the first of `pages`, which stand behind the page of the schema.
fn database(statement: &str, table: &str, pages: Vec<Vec<u8>>) -> Vec<u8> {
    let texts = ["table", table, table];
    let mut types: Vec<u8> = texts.iter().flat_map(|text| varint(text.len() as u64 * 2 + 13)).collect();
    types.push(1);
    types.extend(varint(statement.len() as u64 * 2 + 13));
    let mut record = vec![types.len() as u8 + 1];
    record.extend(types);
    texts.iter().for_each(|text| record.extend(text.as_bytes()));
    record.push(2);
    record.extend(statement.as_bytes());
    let schema = cell(1, &record);

    let mut first = b"SQLite format 3\0".to_vec();
    first.extend((PAGE as u16).to_be_bytes());
    first.extend([1, 1, 0, 64, 32, 32, 0, 0, 0, 1]);
    first.extend((pages.len() as u32 + 1).to_be_bytes());
    first.extend([0; 8]);
    // Schema cookie and format, cache size, largest root, encoding (UTF-8), version, vacuum, application.
    for number in [1_u32, 4, 0, 0, 1, 0, 0, 0] {
        first.extend(number.to_be_bytes());
    }
    first.extend([0; 20]);
    first.extend(1_u32.to_be_bytes());
    first.extend(3_045_000_u32.to_be_bytes());
    let first = page(first, 0x0d, &[], [schema].into_iter());
    std::iter::once(first).chain(pages).flatten().collect()
}

/// A row of a table: its types, which give the lengths, and its values.
fn row(types: &[u8], values: &[u8]) -> Vec<u8> {
    [&[types.len() as u8 + 1], types, values].concat()
}

/// A cell of a leaf: length, number, content.
fn cell(number: u8, record: &[u8]) -> Vec<u8> {
    [varint(record.len() as u64), varint(u64::from(number)), record.to_vec()].concat()
}

fn leaf(cells: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    page(Vec::new(), 0x0d, &[], cells)
}

/// An inner page that refers to one page as often as it can.
fn inner(child: u32) -> Vec<u8> {
    let cell = |key: u8| [child.to_be_bytes().to_vec(), vec![key]].concat();
    page(Vec::new(), 0x05, &child.to_be_bytes(), (0..580).map(|n: u32| cell((n % 120) as u8)))
}

/// A page: header, pointers to cells, and the cells from its end on.
fn page(mut out: Vec<u8>, kind: u8, right: &[u8], cells: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let cells: Vec<Vec<u8>> = cells.collect();
    let mut at = PAGE;
    let places: Vec<usize> = cells
        .iter()
        .map(|cell| {
            at -= cell.len();
            at
        })
        .collect();
    out.extend([kind, 0, 0]);
    out.extend((cells.len() as u16).to_be_bytes());
    out.extend((at as u16).to_be_bytes());
    out.push(0);
    out.extend(right);
    places.iter().for_each(|place| out.extend((*place as u16).to_be_bytes()));
    out.resize(PAGE, 0);
    for (place, cell) in places.iter().zip(&cells) {
        out[*place..place + cell.len()].copy_from_slice(cell);
    }
    out
}

/// A number in SQLite's form: seven bits per byte, the highest first.
fn varint(value: u64) -> Vec<u8> {
    let mut out = vec![value as u8 & 0x7f];
    let mut rest = value >> 7;
    while rest > 0 {
        out.insert(0, rest as u8 & 0x7f | 0x80);
        rest >>= 7;
    }
    out
}
