//! Text that tools print for people: its encoding, and CSV parsing. Shared by the readers of such logs.
//!
//! By hand, because these logs are no proper CSV: lines of other programs between the rows, headers in the middle, rows of
//! more fields than the header has, UTF-16 from Windows.

use std::borrow::Cow;

/// The text of a file. PowerShell redirects to UTF-16, with or without a byte order mark; invalid text is
/// replaced.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes).into(),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes).into(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        [first, 0, _, 0, ..] if *first != 0 => utf16(bytes, u16::from_le_bytes).into(),
        [0, first, 0, _, ..] if *first != 0 => utf16(bytes, u16::from_be_bytes).into(),
        _ => String::from_utf8_lossy(bytes),
    }
}

/// The text of a file's beginning; `None` if it is no text. Every file of a folder is asked, and most are binary.
pub(crate) fn printed(head: &[u8]) -> Option<Cow<'_, str>> {
    const ESCAPE: u8 = 0x1b;
    let text = decode(head.get(..SAMPLE).unwrap_or(head));
    let is_printed = |byte: u8| byte >= b' ' || matches!(byte, b'\t' | b'\r' | b'\n' | ESCAPE);
    text.bytes().all(is_printed).then(|| decode(head))
}

/// Number of bytes that show whether a file is text. Even, for UTF-16.
const SAMPLE: usize = 64;

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().map(|&pair| unit(pair));
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The field separator of a line: a comma, or what spreadsheets use where the comma is the decimal separator.
/// The most frequent candidate outside quotes.
pub(crate) fn separator(line: &str) -> char {
    let (mut counts, mut quoted) = ([0_usize; 3], false);
    for letter in line.chars().take_while(|letter| *letter != '\n') {
        quoted ^= letter == '"';
        if let Some(place) = SEPARATORS.iter().position(|known| *known == letter && !quoted) {
            counts[place] += 1;
        }
    }
    // The last of equals wins, so the comma comes last.
    let most = SEPARATORS.iter().zip(counts).rev().max_by_key(|(_, count)| *count);
    most.map_or(',', |(separator, _)| *separator)
}

const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// The next record of `rest`: its fields without quotes, trimmed. A quoted field may contain separators and
/// line breaks; an unclosed quote ends with the line.
pub(crate) fn record<'t>(rest: &mut &'t str, separator: char) -> Option<Vec<Cow<'t, str>>> {
    if rest.is_empty() {
        return None;
    }
    let mut fields = Vec::new();
    loop {
        let (field, end) = field(rest, separator);
        fields.push(field);
        let ended_by = rest.as_bytes().get(end).copied();
        *rest = rest.get(end + 1..).unwrap_or("");
        if ended_by.map(char::from) != Some(separator) {
            return Some(fields);
        }
    }
}

/// The first field, and the position of the separator or line break after it.
fn field(text: &str, separator: char) -> (Cow<'_, str>, usize) {
    let blank = |c: char| matches!(c, ' ' | '\t') && c != separator;
    let blanks = text.len() - text.trim_start_matches(blank).len();
    if let Some(inner) = text[blanks..].strip_prefix('"')
        && let Some(close) = closing_quote(inner)
    {
        let start = blanks + 1;
        let inside = &text[start..start + close];
        let after = start + close + 1;
        let end = text[after..].find([separator, '\n']).map_or(text.len(), |at| after + at);
        let inside = if inside.contains('"') { inside.replace("\"\"", "\"").into() } else { inside.into() };
        return (inside, end);
    }
    let end = text.find([separator, '\n']).unwrap_or(text.len());
    (text[..end].trim().into(), end)
}

fn closing_quote(inner: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = inner[from..].find('"').map(|at| from + at) {
        if !inner[at + 1..].starts_with('"') {
            return Some(at);
        }
        from = at + 2;
    }
    None
}

/// A number that may have thousands separators: commas, or, in other locales, spaces or points with a decimal
/// comma.
pub(crate) fn number(text: &str) -> Option<f64> {
    let digits = text.trim();
    if !digits.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let plain: Option<f64> = digits.parse().ok();
    plain.or_else(|| grouped(digits)).filter(|value| value.is_finite())
}

fn grouped(digits: &str) -> Option<f64> {
    let blanks = |c: char| c.is_whitespace();
    let whole = digits.split([',', '.']).next().unwrap_or("");
    if whole.contains(blanks) && !whole.split(blanks).skip(1).all(|group| group.len() == 3) {
        return None;
    }
    let digits = digits.replace(blanks, "");
    let (comma, point) = (digits.rfind(','), digits.rfind('.'));
    let (commas, points) = (digits.matches(',').count(), digits.matches('.').count());
    // A single comma with three digits after it separates thousands; otherwise it is a decimal comma.
    let behind = comma.map_or(0, |at| digits.len() - at - 1);
    let fraction = commas == 1 && if points > 0 { comma > point } else { behind != 3 };
    match (fraction, points) {
        (true, _) => digits.replace('.', "").replace(',', ".").parse().ok(),
        (false, 2..) => digits.replace(['.', ','], "").parse().ok(),
        (false, _) => digits.replace(',', "").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Vec<String>> {
        let mut rest = text;
        let separator = separator(text);
        std::iter::from_fn(|| record(&mut rest, separator))
            .map(|fields| fields.into_iter().map(Cow::into_owned).collect())
            .collect()
    }

    #[test]
    fn quotes_hold_commas_and_line_breaks() {
        assert_eq!(all("a, b ,\"c,\n\"\"d\"\"\"\r\ne,\n"), [vec!["a", "b", "c,\n\"d\""], vec!["e", ""]]);
        assert_eq!(all("\"open, end\nnext"), [vec!["\"open", "end"], vec!["next"]]);
        assert_eq!(all(""), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_binary_file_is_no_text() {
        assert!(printed(b"timestamp, power\r\n\x1b[0m").is_some());
        assert!(printed(b"\xff\xfet\0i\0m\0e\0\n\0").is_some_and(|text| text == "time\n"));
        assert!(printed(b"\n\x08\x01\x12/host:CPU").is_none());
        assert!(printed(b"").is_some());
    }

    #[test]
    fn spreadsheets_separate_otherwise() {
        assert_eq!(all("a; b ;\"c;d\"\n1,5;;2\n"), [vec!["a", "b", "c;d"], vec!["1,5", "", "2"]]);
        assert_eq!(all("a\tb\t\n1,5\t\t2"), [vec!["a", "b", ""], vec!["1,5", "", "2"]]);
        assert_eq!(separator("\"a;b;c;d\",e"), ',');
        assert_eq!(separator("alone"), ',');
    }

    #[test]
    fn utf16_of_both_orders_is_read_with_and_without_a_mark() {
        let little: Vec<u8> = "gpu, 45 %".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "gpu, 45 %".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&little), "gpu, 45 %");
        assert_eq!(decode(&big), "gpu, 45 %");
        assert_eq!(decode(&[&[0xff, 0xfe][..], &little].concat()), "gpu, 45 %");
        assert_eq!(decode(b"\xef\xbb\xbfgpu"), "gpu");
    }

    #[test]
    fn numbers_may_have_thousands() {
        assert_eq!(number("1,234,567.5"), Some(1_234_567.5));
        assert_eq!(number(" -3e2 "), Some(-300.0));
        for (text, want) in [
            ("1,234", 1_234.0),
            ("19,38", 19.38),
            ("0,5", 0.5),
            ("1.234,56", 1_234.56),
            ("4.341.767", 4_341_767.0),
            ("23 111 929,56", 23_111_929.56),
            ("23\u{202f}111\u{a0}929", 23_111_929.0),
        ] {
            assert_eq!(number(text), Some(want), "{text}");
        }
        assert_eq!(number("16 MiB"), None);
        assert_eq!(number("12 34"), None);
        for none in ["", "nan", "inf", "n/a", "(32, 1)", "-", "."] {
            assert_eq!(number(none), None, "{none}");
        }
    }
}
