//! One entry of a partial as bytes.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | magic |
//! | 2 | format |
//! | 2 | the least format that a reader must know |
//! | 4 | length of the header |
//! | 8 | length of the body |
//! | 8 | XXH64 of everything else |
//! | … | header: JSON, not compressed |
//! | … | body: Zstandard over MessagePack with named fields; may be empty |
//!
//! Numbers are little-endian. Frames follow one another. Later versions only add fields; a version that changes the
//! meaning of one raises the least format. No length is trusted before the bytes are there.

use std::hash::Hasher;
use std::io::Read;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stepscope_analyze::session::Timeline;
use twox_hash::XxHash64;

use crate::error::FleetError;
use crate::pack;
use crate::plan::Recording;
use crate::shard::Shards;

/// The format that this version writes.
pub(crate) const FORMAT: u16 = 2;
/// The least format that a reader of these frames must know.
const LEAST: u16 = 2;
pub(crate) const MAGIC: &[u8; 8] = b"\x89SSFLT\r\n";
/// Bytes before the header.
const PREFIX: usize = 32;
/// The checksum's place in the prefix.
const CHECKSUM: std::ops::Range<usize> = 24..32;
/// A longer header is damage.
const LONGEST_HEADER: usize = 16 << 20;
/// A body that decompresses to more is damage or malice: results are bounded when they are made.
const LARGEST_BODY: u64 = 64 << 20;

/// What a frame holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The first frame of a partial: how many entries follow.
    Set,
    /// A file that could not be read.
    Failed,
    /// One host's results.
    Host,
    /// A finished recording.
    Recording,
}

/// What is known of an entry without its body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    /// The version of stepscope that wrote it.
    pub(crate) tool: String,
    /// Of a host: the id of its input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    /// The recording that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) recording: Option<Recording>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) host: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    /// Size of the input.
    #[serde(default)]
    pub(crate) bytes: u64,
    /// Of a host with a timeline: when it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeline: Option<Timeline>,
    /// Why it could not be read, or what is damaged in it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Of a set: how many frames follow.
    #[serde(default)]
    pub(crate) entries: u64,
    /// Of a set: the shards in it.
    #[serde(default, skip_serializing_if = "Shards::is_empty")]
    pub(crate) shards: Shards,
}

impl Header {
    /// A header of this version.
    pub(crate) fn new(kind: Kind) -> Self {
        Header {
            kind,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            id: String::new(),
            recording: None,
            host: String::new(),
            path: String::new(),
            bytes: 0,
            timeline: None,
            reason: String::new(),
            entries: 0,
            shards: Shards::default(),
        }
    }
}

/// One entry: its header, and all its bytes as they were written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    raw: Vec<u8>,
    body: usize,
}

impl Frame {
    /// A frame around a body that is compressed already.
    pub(crate) fn new(header: Header, body: &[u8]) -> Result<Self, FleetError> {
        let text = serde_json::to_vec(&header).map_err(|error| FleetError::Content(error.to_string()))?;
        let mut raw = Vec::with_capacity(PREFIX + text.len() + body.len());
        raw.extend_from_slice(MAGIC);
        raw.extend_from_slice(&FORMAT.to_le_bytes());
        raw.extend_from_slice(&LEAST.to_le_bytes());
        let length = u32::try_from(text.len()).ok().filter(|length| *length as usize <= LONGEST_HEADER);
        let length = length.ok_or_else(|| FleetError::Content("the header is too long".to_owned()))?;
        raw.extend_from_slice(&length.to_le_bytes());
        raw.extend_from_slice(&(body.len() as u64).to_le_bytes());
        raw.extend_from_slice(&[0; 8]);
        raw.extend_from_slice(&text);
        raw.extend_from_slice(body);
        let checksum = checksum(&raw);
        raw[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        Ok(Frame { header, raw, body: PREFIX + text.len() })
    }

    /// All its bytes.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The compressed body.
    pub(crate) fn body(&self) -> &[u8] {
        self.raw.get(self.body..).unwrap_or_default()
    }

    /// The content of the body.
    pub(crate) fn content<T: DeserializeOwned>(&self) -> Result<T, FleetError> {
        decoded(self.body())
    }

    /// Reads the frame at `at`, and returns where the next one begins.
    fn read(bytes: &[u8], at: usize) -> Result<(Self, usize), FleetError> {
        let rest = bytes.get(at..).unwrap_or_default();
        if !rest.starts_with(&MAGIC[..rest.len().min(MAGIC.len())]) {
            return Err(FleetError::NotPartial);
        }
        let truncated = |expected: u64| FleetError::Truncated {
            found: bytes.len() as u64,
            expected: (at as u64).saturating_add(expected),
        };
        let prefix = rest.get(..PREFIX).ok_or_else(|| truncated(PREFIX as u64))?;
        let number = |from: usize, length: usize| {
            let part = prefix.get(from..from + length).unwrap_or_default();
            part.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (format, least) = (number(8, 2) as u16, number(10, 2) as u16);
        let (header_length, body_length) = (number(12, 4), number(16, 8));
        if header_length > LONGEST_HEADER as u64 {
            return Err(FleetError::Checksum { at: at as u64 });
        }
        let length = (PREFIX as u64).saturating_add(header_length).saturating_add(body_length);
        let raw = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let raw = raw.ok_or_else(|| truncated(length))?;
        if number(CHECKSUM.start, 8) != checksum(raw) {
            return Err(FleetError::Checksum { at: at as u64 });
        }
        let body = PREFIX + header_length as usize;
        let text = raw.get(PREFIX..body).unwrap_or_default();
        if least > FORMAT {
            return Err(FleetError::Newer { found: format, known: FORMAT, tool: tool_of(text) });
        }
        let header = serde_json::from_slice(text).map_err(|error| FleetError::Content(error.to_string()))?;
        Ok((Frame { header, raw: raw.to_vec(), body }, at + raw.len()))
    }
}

/// All frames of a partial.
pub(crate) fn frames(bytes: &[u8]) -> Result<Vec<Frame>, FleetError> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (frame, next) = Frame::read(bytes, at)?;
        all.push(frame);
        at = next;
    }
    Ok(all)
}

/// The version in a header that is otherwise not understood.
fn tool_of(header: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(header).ok();
    let tool = value.as_ref().and_then(|value| value.get("tool")?.as_str());
    tool.unwrap_or("of an unknown version").to_owned()
}

fn checksum(raw: &[u8]) -> u64 {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(raw.get(..CHECKSUM.start).unwrap_or_default());
    hasher.write(raw.get(CHECKSUM.end..).unwrap_or_default());
    hasher.finish()
}

/// Encodes and compresses a body.
pub(crate) fn encoded<T: Serialize>(content: &T) -> Result<Vec<u8>, FleetError> {
    let packed = pack::packed(content).map_err(|error| FleetError::Content(error.to_string()))?;
    if packed.len() as u64 > LARGEST_BODY {
        return Err(FleetError::Content(format!("{} bytes are too many for an entry", packed.len())));
    }
    Ok(compressed(&packed))
}

pub(crate) fn compressed(packed: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(packed, ruzstd::encoding::CompressionLevel::Fastest)
}

fn decoded<T: DeserializeOwned>(body: &[u8]) -> Result<T, FleetError> {
    pack::unpacked(&unpacked(body)?).map_err(|error| FleetError::Content(error.to_string()))
}

/// The decompressed body, up to a limit.
pub(crate) fn unpacked(body: &[u8]) -> Result<Vec<u8>, FleetError> {
    let content = |error: &dyn std::fmt::Display| FleetError::Content(error.to_string());
    let decoder = ruzstd::decoding::StreamingDecoder::new(body).map_err(|error| content(&error))?;
    let mut packed = Vec::new();
    decoder.take(LARGEST_BODY + 1).read_to_end(&mut packed).map_err(|error| content(&error))?;
    if packed.len() as u64 > LARGEST_BODY {
        return Err(FleetError::Content("an entry is larger than any that stepscope writes".to_owned()));
    }
    Ok(packed)
}

/// An id for what was hashed: 128 bits, so that equal ids mean equal inputs.
pub(crate) fn id_of(parts: &[&[u8]]) -> String {
    let half = |seed: u64| {
        let mut hasher = XxHash64::with_seed(seed);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let body = encoded(&vec![("a".to_owned(), 1_u64); 40]).unwrap();
        Frame::new(Header { id: "x".to_owned(), ..Header::new(Kind::Host) }, &body).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let written = frame();
        let twice = [written.raw(), written.raw()].concat();
        let read = frames(&twice).unwrap();
        assert_eq!(read, [written.clone(), written]);
        let content: Vec<(String, u64)> = read[0].content().unwrap();
        assert_eq!(content.len(), 40);
        assert!(frames(&[]).unwrap().is_empty());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let whole = frame().raw().to_vec();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x20;
            assert!(frames(&damaged).is_err(), "byte {at}");
            assert!(at == 0 || frames(&whole[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn newer_files_are_refused_by_name_unless_they_say_that_they_can_be_read() {
        let mut raw = frame().raw().to_vec();
        let sealed = |raw: &mut Vec<u8>| {
            let sum = checksum(raw);
            raw[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        };
        raw[8] = 7;
        sealed(&mut raw);
        assert_eq!(frames(&raw).unwrap().len(), 1, "only fields were added");
        raw[10] = 7;
        sealed(&mut raw);
        let error = frames(&raw).unwrap_err().to_string();
        assert!(error.contains("format 7") && error.contains("up to format 2"), "{error}");
        assert!(matches!(frames(b"PK\x03\x04"), Err(FleetError::NotPartial)));
    }

    #[test]
    fn fields_that_a_later_version_adds_are_passed_over() {
        #[derive(Serialize)]
        struct Later {
            a: u32,
            b: String,
        }
        #[derive(Deserialize, Debug, PartialEq)]
        struct Now {
            a: u32,
            #[serde(default)]
            c: Vec<u8>,
        }
        let body = encoded(&Later { a: 3, b: "new".to_owned() }).unwrap();
        let read: Now = decoded(&body).unwrap();
        assert_eq!(read, Now { a: 3, c: Vec::new() });
    }

    #[test]
    fn a_body_that_grows_without_end_is_cut_off() {
        let bomb = ruzstd::encoding::compress_to_vec(
            std::io::repeat(0x90).take(LARGEST_BODY + 100),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        assert!(bomb.len() < 1 << 20);
        assert!(decoded::<Vec<Vec<u8>>>(&bomb).is_err());
    }
}
