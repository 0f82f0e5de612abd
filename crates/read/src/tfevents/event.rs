//! One event: its time, its step, and what it carries. Borrows from the file; nothing is copied.

use stepscope_trace::series::{GraphForm, OtherKind};

use super::shape::Shape;
use stepscope_wire::{Cursor, Payload};

/// A field of a message.
pub(super) enum Field<'b> {
    Number(u64),
    Wide([u8; 8]),
    Bytes(&'b [u8]),
    Narrow([u8; 4]),
}

/// The fields of a message, up to its end or to where it is broken.
#[inline]
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Field<'_>)> {
    let mut cursor = Cursor::new(message, 0..message.len());
    std::iter::from_fn(move || {
        let field = cursor.field().ok()??;
        let value = match field.value {
            Payload::Varint(number) => Field::Number(number),
            Payload::Fixed64(bits) => Field::Wide(bits.to_le_bytes()),
            Payload::Fixed32(bits) => Field::Narrow(bits.to_le_bytes()),
            Payload::Len(range) => Field::Bytes(message.get(range)?),
            Payload::Cut(_) => return None,
        };
        Some((field.number, value))
    })
}

/// What an event says besides its values.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Event {
    /// Seconds since 1970.
    pub(super) wall_s: f64,
    /// The step, as the program counts.
    pub(super) step: i64,
    /// Does it open a file?
    pub(super) opens: bool,
    /// Does a session start here? Then what was logged from this step on is obsolete.
    pub(super) starts: bool,
    /// Was a checkpoint saved here?
    pub(super) saves: bool,
}

/// What a tag was given.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Given<'b> {
    /// A number.
    Number(f64),
    /// Something else.
    Other(OtherKind, Option<Shape<'b>>),
}

/// Reads an event and hands each of its values on, with the event's time and step.
pub(super) fn event<'b>(payload: &'b [u8], each: &mut dyn FnMut(&Event, &'b [u8], Given<'b>)) -> Event {
    let mut event = Event::default();
    let mut carried = None;
    for (number, value) in fields(payload) {
        match (number, value) {
            (1, Field::Wide(bytes)) => event.wall_s = f64::from_le_bytes(bytes),
            (2, Field::Number(step)) => event.step = step.cast_signed(),
            (3, Field::Bytes(_)) => event.opens = true,
            (7, Field::Bytes(log)) => {
                let status = session_status(log);
                (event.starts, event.saves) = (status == Some(1), status == Some(3));
            }
            (4 | 5 | 8 | 9, Field::Bytes(bytes)) => carried = Some((number, bytes)),
            _ => {}
        }
    }
    // The time and the step may stand behind what they belong to.
    match carried {
        Some((5, summary)) => values(summary, &mut |tag, given| each(&event, tag, given)),
        Some((4, graph)) => {
            let shape = Shape::Graph(GraphForm::Graph, graph);
            each(&event, b"__run_graph__", Given::Other(OtherKind::Graph, Some(shape)));
        }
        Some((9, graph)) => {
            let shape = Shape::Graph(GraphForm::MetaGraph, graph);
            each(&event, b"__meta_graph__", Given::Other(OtherKind::Graph, Some(shape)));
        }
        Some((_, tagged)) => {
            let tag = first_bytes(tagged).unwrap_or_default();
            let shape = bytes_of(tagged, 2).map(Shape::Run);
            each(&event, tag, Given::Other(OtherKind::RunMetadata, shape));
        }
        None => {}
    }
    event
}

/// 1 for a start, 2 for a stop, 3 for a checkpoint.
fn session_status(log: &[u8]) -> Option<u64> {
    for (number, value) in fields(log) {
        if let (1, Field::Number(status)) = (number, value) {
            return Some(status);
        }
    }
    None
}

/// The first field's bytes.
fn first_bytes(message: &[u8]) -> Option<&[u8]> {
    bytes_of(message, 1)
}

/// The bytes of the field with a number.
pub(super) fn bytes_of(message: &[u8], wanted: u32) -> Option<&[u8]> {
    for (number, value) in fields(message) {
        if let Field::Bytes(bytes) = value
            && number == wanted
        {
            return Some(bytes);
        }
    }
    None
}

fn values<'b>(summary: &'b [u8], each: &mut dyn FnMut(&'b [u8], Given<'b>)) {
    let mut rest = summary;
    // Nearly all values of nearly all logs look like this. Reading them field by field takes three times as long.
    while let Some((tag, number, behind)) = plain(rest) {
        each(tag, Given::Number(number));
        rest = behind;
    }
    for (number, value) in fields(rest) {
        if let (1, Field::Bytes(value)) = (number, value)
            && let Some((tag, given)) = tagged(value)
        {
            each(tag, given);
        }
    }
}

/// A short tag and a number, and what is behind them; `None` of anything else.
#[inline]
fn plain(summary: &[u8]) -> Option<(&[u8], f64, &[u8])> {
    let [0x0a, length @ 0..0x80, rest @ ..] = summary else { return None };
    let (value, behind) = rest.split_at_checked(usize::from(*length))?;
    let [0x0a, length @ 0..0x80, rest @ ..] = value else { return None };
    let (tag, rest) = rest.split_at_checked(usize::from(*length))?;
    let [0x15, number @ ..] = rest else { return None };
    let number: &[u8; 4] = number.try_into().ok()?;
    Some((tag, f64::from(f32::from_le_bytes(*number)), behind))
}

/// One value of a summary.
#[inline]
fn tagged(value: &[u8]) -> Option<(&[u8], Given<'_>)> {
    let (mut tag, mut given, mut plugin, mut content) = (None, None, None, None);
    for (number, value) in fields(value) {
        match (number, value) {
            (1, Field::Bytes(text)) => tag = Some(text),
            (2, Field::Narrow(bytes)) => given = Some(Given::Number(f64::from(f32::from_le_bytes(bytes)))),
            (3, Field::Bytes(_)) => given = Some(Given::Other(OtherKind::Histogram, None)),
            (4, Field::Bytes(message)) => {
                given = Some(Given::Other(OtherKind::Image, Some(Shape::Image(message))));
            }
            (5, Field::Bytes(message)) => {
                given = Some(Given::Other(OtherKind::Histogram, Some(Shape::Histogram(message))));
            }
            (6, Field::Bytes(_)) => given = Some(Given::Other(OtherKind::Audio, None)),
            (8, Field::Bytes(bytes)) => given = Some(tensor(bytes)),
            (9, Field::Bytes(metadata)) => {
                let data = first_bytes(metadata);
                (plugin, content) = (data.and_then(first_bytes), data.and_then(|data| bytes_of(data, 2)));
            }
            _ => {}
        }
    }
    let given = given.or_else(|| plugin.is_some().then_some(Given::Other(OtherKind::Tensor, None)))?;
    Some((tag?, of_plugin(given, plugin, content)))
}

/// What the plugin that a value is for makes of it: numbers for others than scalars are no curve.
fn of_plugin<'b>(given: Given<'b>, plugin: Option<&[u8]>, content: Option<&'b [u8]>) -> Given<'b> {
    let kind = match plugin {
        None | Some(b"scalars" | b"") => return given,
        Some(b"histograms") => OtherKind::Histogram,
        Some(b"text") => OtherKind::Text,
        Some(b"images") => OtherKind::Image,
        Some(b"audio") => OtherKind::Audio,
        Some(b"hparams") => return Given::Other(OtherKind::Hparams, content.map(Shape::Hparams)),
        Some(name) if name.starts_with(b"graph") => OtherKind::Graph,
        // A plugin of somebody else may well log numbers.
        Some(_) => return given,
    };
    match given {
        Given::Other(_, shape) => Given::Other(kind, shape),
        Given::Number(_) => Given::Other(kind, None),
    }
}

/// TensorFlow's numbers of element types.
pub(super) mod types {
    pub(in crate::tfevents) const FLOAT: u64 = 1;
    pub(in crate::tfevents) const DOUBLE: u64 = 2;
    pub(in crate::tfevents) const INT32: u64 = 3;
    pub(in crate::tfevents) const UINT8: u64 = 4;
    pub(in crate::tfevents) const INT16: u64 = 5;
    pub(in crate::tfevents) const INT8: u64 = 6;
    pub(in crate::tfevents) const STRING: u64 = 7;
    pub(in crate::tfevents) const INT64: u64 = 9;
    pub(in crate::tfevents) const BOOL: u64 = 10;
    pub(in crate::tfevents) const BFLOAT16: u64 = 14;
    pub(in crate::tfevents) const UINT16: u64 = 17;
    pub(in crate::tfevents) const HALF: u64 = 19;
    pub(in crate::tfevents) const UINT32: u64 = 22;
    pub(in crate::tfevents) const UINT64: u64 = 23;
}

/// A tensor: a number if it has one element, else something else.
fn tensor(tensor: &[u8]) -> Given<'_> {
    let (mut kind, mut elements, mut content, mut listed) = (0, 1_u64, None, None);
    for (number, value) in fields(tensor) {
        match (number, value) {
            (1, Field::Number(number)) => kind = number,
            (2, Field::Bytes(shape)) => elements = size(shape),
            (4, Field::Bytes(bytes)) => content = Some(bytes),
            // Lists of values, packed or not; one value is all that counts.
            (5..=17, value) => listed = listed.or(Some((number, value))),
            _ => {}
        }
    }
    let single = (elements == 1).then(|| match (content, listed) {
        (Some(bytes), _) => stored(kind, bytes),
        (None, Some((list, value))) => from_list(kind, list, &value),
        // Zero is left out.
        (None, None) => Some(0.0),
    });
    let text = if kind == types::STRING { OtherKind::Text } else { OtherKind::Tensor };
    let other = Given::Other(text, Some(Shape::Tensor(tensor)));
    single.flatten().filter(|_| kind != types::STRING).map_or(other, Given::Number)
}

/// How many elements a shape has.
fn size(shape: &[u8]) -> u64 {
    let mut elements = 1_u64;
    for (number, value) in fields(shape) {
        if let (2, Field::Bytes(dimension)) = (number, value) {
            let mut length = 0;
            for (number, value) in fields(dimension) {
                if let (1, Field::Number(number)) = (number, value) {
                    length = number;
                }
            }
            elements = elements.saturating_mul(length);
        }
    }
    elements
}

/// One element as it lies in memory.
fn stored(kind: u64, bytes: &[u8]) -> Option<f64> {
    let narrow = || bytes.first_chunk::<4>().copied();
    let wide = || bytes.first_chunk::<8>().copied();
    let half = || bytes.first_chunk::<2>().copied();
    let byte = || bytes.first().copied();
    match kind {
        types::FLOAT => narrow().map(|bytes| f64::from(f32::from_le_bytes(bytes))),
        types::DOUBLE => wide().map(f64::from_le_bytes),
        types::INT32 => narrow().map(|bytes| f64::from(i32::from_le_bytes(bytes))),
        types::UINT32 => narrow().map(|bytes| f64::from(u32::from_le_bytes(bytes))),
        types::INT64 => wide().map(|bytes| i64::from_le_bytes(bytes) as f64),
        types::UINT64 => wide().map(|bytes| u64::from_le_bytes(bytes) as f64),
        types::INT16 => half().map(|bytes| f64::from(i16::from_le_bytes(bytes))),
        types::UINT16 => half().map(|bytes| f64::from(u16::from_le_bytes(bytes))),
        types::BFLOAT16 => half().map(|bytes| bfloat16(u16::from_le_bytes(bytes))),
        types::HALF => half().map(|bytes| float16(u16::from_le_bytes(bytes))),
        types::INT8 => byte().map(|byte| f64::from(byte.cast_signed())),
        types::UINT8 | types::BOOL => byte().map(f64::from),
        _ => None,
    }
}

/// The first element of a list of values.
fn from_list(kind: u64, list: u32, value: &Field<'_>) -> Option<f64> {
    let number = || match value {
        Field::Number(number) => Some(*number),
        Field::Bytes(packed) => Cursor::new(packed, 0..packed.len()).varint().ok(),
        _ => None,
    };
    match list {
        5 => match value {
            Field::Narrow(bytes) => Some(f64::from(f32::from_le_bytes(*bytes))),
            Field::Bytes(packed) => packed.first_chunk().map(|bytes| f64::from(f32::from_le_bytes(*bytes))),
            _ => None,
        },
        6 => match value {
            Field::Wide(bytes) => Some(f64::from_le_bytes(*bytes)),
            Field::Bytes(packed) => packed.first_chunk().map(|bytes| f64::from_le_bytes(*bytes)),
            _ => None,
        },
        13 if kind == types::BFLOAT16 => number().map(|bits| bfloat16(bits as u16)),
        13 => number().map(|bits| float16(bits as u16)),
        16 | 17 => number().map(|number| number as f64),
        7 | 10 | 11 => number().map(|number| number.cast_signed() as f64),
        _ => None,
    }
}

fn bfloat16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

fn float16(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_testkit::tfevents::{scalar, with_value};

    use super::*;

    fn first(payload: &[u8]) -> Option<(Event, String, Given<'static>)> {
        let mut seen = None;
        event(payload, &mut |event, tag, given| {
            let given = match given {
                Given::Number(number) => Given::Number(number),
                Given::Other(kind, _) => Given::Other(kind, None),
            };
            seen = Some((*event, String::from_utf8_lossy(tag).into_owned(), given));
        });
        seen
    }

    /// A value with tag `t`, a tensor and a plugin.
    fn of_tensor(tensor: &[u8], plugin: &str) -> Vec<u8> {
        let mut value = vec![0x0a, 1, b't', 0x42, tensor.len() as u8];
        value.extend(tensor);
        let mut data = vec![0x0a, plugin.len() as u8];
        data.extend(plugin.as_bytes());
        value.extend([0x4a, data.len() as u8 + 2, 0x0a, data.len() as u8]);
        value.extend(data);
        value
    }

    #[test]
    fn numbers_are_read_in_all_the_ways_in_which_they_are_written() {
        let (event, tag, given) = first(&scalar(100.5, 3, "loss", 0.25)).unwrap();
        assert_eq!((event.wall_s, event.step, tag.as_str()), (100.5, 3, "loss"));
        assert_eq!(given, Given::Number(0.25));
        let given = |tensor: &[u8]| first(&with_value(1.0, 1, &of_tensor(tensor, "scalars"))).unwrap().2;
        let content =
            |kind: u8, bytes: &[u8]| [&[0x08, kind, 0x12, 0, 0x22, bytes.len() as u8], bytes].concat();
        assert_eq!(given(&content(1, &2.5_f32.to_le_bytes())), Given::Number(2.5));
        assert_eq!(given(&content(2, &2.5_f64.to_le_bytes())), Given::Number(2.5));
        assert_eq!(given(&content(9, &(-7_i64).to_le_bytes())), Given::Number(-7.0));
        assert_eq!(given(&content(14, &0x4020_u16.to_le_bytes())), Given::Number(2.5));
        assert_eq!(given(&content(19, &0x4100_u16.to_le_bytes())), Given::Number(2.5));
        assert_eq!(given(&[0x08, 1, 0x2a, 4, 0, 0, 0x20, 0x40]), Given::Number(2.5), "a packed list");
        assert_eq!(
            given(&[0x08, 1, 0x2d, 0, 0, 0x20, 0x40]),
            Given::Number(2.5),
            "a list that is not packed"
        );
        assert_eq!(given(&[0x08, 3, 0x38, 5]), Given::Number(5.0));
        assert_eq!(given(&[0x08, 1]), Given::Number(0.0), "zero is left out");
        let Given::Number(nan) = given(&content(1, &f32::NAN.to_le_bytes())) else { unreachable!() };
        assert!(nan.is_nan());
    }

    #[test]
    fn values_of_one_event_are_all_read_whatever_they_look_like() {
        let plain = |tag: u8| [&[0x0a, 1, tag, 0x15][..], &2.5_f32.to_le_bytes()].concat();
        let mut summary = Vec::new();
        for value in [plain(b'a'), of_tensor(&[0x08, 3, 0x38, 5], "scalars"), plain(b'b')] {
            summary.extend([0x0a, value.len() as u8]);
            summary.extend(value);
        }
        let mut seen = Vec::new();
        values(&summary, &mut |tag, given| seen.push((tag.to_vec(), given)));
        let number = |tag: &[u8], value: f64| (tag.to_vec(), Given::Number(value));
        assert_eq!(seen, [number(b"a", 2.5), number(b"t", 5.0), number(b"b", 2.5)]);
    }

    #[test]
    fn what_is_no_number_is_known_by_its_kind() {
        let kind = |plugin: &str| {
            first(&with_value(1.0, 1, &of_tensor(&[0x08, 7, 0x42, 1, b'x'], plugin))).unwrap().2
        };
        assert_eq!(kind("text"), Given::Other(OtherKind::Text, None));
        assert_eq!(kind("images"), Given::Other(OtherKind::Image, None));
        assert_eq!(kind("scalars"), Given::Other(OtherKind::Text, None));
        let vector = [0x08, 1, 0x12, 4, 0x12, 2, 0x08, 3, 0x22, 0];
        assert_eq!(
            first(&with_value(1.0, 1, &of_tensor(&vector, "mine"))).unwrap().2,
            Given::Other(OtherKind::Tensor, None)
        );
        let graph = first(&[0x22, 1, 0]).unwrap();
        assert_eq!((graph.1.as_str(), graph.2), ("__run_graph__", Given::Other(OtherKind::Graph, None)));
    }

    #[test]
    fn starts_of_files_and_sessions_are_seen() {
        assert!(event(&[0x1a, 1, b'x'], &mut |_, _, _| ()).opens);
        assert!(event(&[0x3a, 2, 0x08, 1], &mut |_, _, _| ()).starts);
        assert!(!event(&[0x3a, 2, 0x08, 2], &mut |_, _, _| ()).starts, "a stop");
        assert!(event(&[0x3a, 2, 0x08, 3], &mut |_, _, _| ()).saves);
    }

    #[test]
    fn broken_events_say_what_they_can() {
        let whole = scalar(1.0, 1, "loss", 0.5);
        for cut in 0..whole.len() {
            event(&whole[..cut], &mut |_, _, _| ());
        }
    }
}
