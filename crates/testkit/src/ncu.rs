//! Nsight Compute reports, byte by byte: blocks of length-prefixed messages after `NVR\0`.

use std::collections::HashMap;

/// A report under construction: one block per launch, and one for the session.
#[derive(Clone, Debug, Default)]
pub struct Report {
    blocks: Vec<u8>,
    strings: HashMap<String, usize>,
}

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block with the session's device and creation time, in seconds since 1970.
    pub fn session(&mut self, created: u64, device: &str, attributes: &[(&str, u64)]) -> &mut Self {
        let mut properties = [varint_field(1, 0), bytes_field(2, device.as_bytes())].concat();
        for (name, value) in attributes {
            let value = bytes_field(2, &varint_field(5, *value));
            properties.extend(bytes_field(3, &[bytes_field(1, name.as_bytes()), value].concat()));
        }
        let session = [varint_field(2, created), bytes_field(6, &properties)].concat();
        self.block(&[bytes_field(3, &session)].concat(), &[]);
        self
    }

    /// Adds a profiled launch. New metric names go into the string table of its block.
    pub fn launch(
        &mut self,
        kernel: &str,
        grid: [u64; 3],
        block: [u64; 3],
        metrics: &[(&str, f64)],
    ) -> &mut Self {
        let mut table = Vec::new();
        let mut result = bytes_field(7, kernel.as_bytes());
        result.extend(bytes_field(10, &shape(grid)));
        result.extend(bytes_field(11, &shape(block)));
        result.extend([varint_field(22, 1), varint_field(23, 7)].concat());
        for (name, value) in metrics {
            let next = self.strings.len();
            let id = *self.strings.entry((*name).to_owned()).or_insert_with(|| {
                table.extend(bytes_field(1, name.as_bytes()));
                next
            });
            let value = [vec![3 << 3 | 1], value.to_le_bytes().to_vec()].concat();
            let metric = [varint_field(1, id as u64), bytes_field(2, &value)].concat();
            result.extend(bytes_field(13, &metric));
        }
        let header = [varint_field(1, 0), varint_field(2, 1), bytes_field(4, &table)].concat();
        self.block(&header, &sized(&result));
        self
    }

    fn block(&mut self, header: &[u8], payload: &[u8]) {
        let header = [header, &varint_field(5, payload.len() as u64)].concat();
        self.blocks.extend(sized(&header));
        self.blocks.extend(payload);
    }

    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        [b"NVR\0".to_vec(), sized(&varint_field(1, 7)), self.blocks.clone()].concat()
    }
}

fn sized(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_le_bytes()[..], message].concat()
}

fn shape(sizes: [u64; 3]) -> Vec<u8> {
    (1..).zip(sizes).flat_map(|(number, size)| varint_field(number, size)).collect()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn varint_field(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn bytes_field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}
