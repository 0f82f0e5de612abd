//! From a piece of text to its value: unescaped strings, exact numbers.

use std::borrow::Cow;

use stepscope_trace::{Datum, StrId, StringTableBuilder};

use super::repair::{Repair, Repairs};
use super::scan::{Piece, Sort};

const PS_PER_US_DIGITS: i64 = 6;

/// Interns a string; other values as they appear.
#[inline]
pub(crate) fn intern(
    strings: &mut StringTableBuilder,
    text: &[u8],
    piece: Piece,
    repairs: &mut Repairs,
) -> StrId {
    if piece.is_missing() {
        return StrId::default();
    }
    match decode(text, piece, repairs) {
        Cow::Borrowed(text) => strings.intern(text),
        Cow::Owned(text) => strings.intern(&text),
    }
}

/// The text of a string; for other values, the text as it appears.
pub(crate) fn decode<'t>(text: &'t [u8], piece: Piece, repairs: &mut Repairs) -> Cow<'t, str> {
    let raw = piece.of(text);
    let is_string = matches!(piece.sort, Sort::Text | Sort::Escaped);
    if is_string && raw.iter().fold(false, |found, &byte| found | (byte < b' ')) {
        repairs.count(Repair::ControlByte);
    }
    let valid = match std::str::from_utf8(raw) {
        Ok(valid) => Cow::Borrowed(valid),
        Err(_) => {
            repairs.count(Repair::InvalidUtf8);
            Cow::Owned(String::from_utf8_lossy(raw).into_owned())
        }
    };
    if piece.sort == Sort::Escaped { Cow::Owned(unescape(&valid, repairs)) } else { valid }
}

/// Resolves escapes. A backslash that escapes nothing stays, as in a Windows path.
fn unescape(raw: &str, repairs: &mut Repairs) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let plain = match behind.as_bytes().first() {
            Some(b'"') => Some('"'),
            Some(b'\\') => Some('\\'),
            Some(b'/') => Some('/'),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            _ => None,
        };
        rest = if let Some(plain) = plain {
            out.push(plain);
            &behind[1..]
        } else if let Some((decoded, len)) = unicode(behind) {
            if decoded == char::REPLACEMENT_CHARACTER {
                repairs.count(Repair::BadEscape);
            }
            out.push(decoded);
            &behind[len..]
        } else {
            repairs.count(Repair::BadEscape);
            out.push('\\');
            behind
        };
    }
    out.push_str(rest);
    out
}

/// The character of `uXXXX` or of a surrogate pair, and the number of bytes used.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |text: &str| {
        let digits = text.strip_prefix('u')?.get(..4)?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let first = unit(text)?;
    if let Some(single) = char::from_u32(u32::from(first)) {
        return Some((single, 5));
    }
    let second = text.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    Some(pair.map_or((char::REPLACEMENT_CHARACTER, 5), |pair| (pair, 11)))
}

/// Converts any value to what the trace stores.
#[inline]
pub(crate) fn datum(
    strings: &mut StringTableBuilder,
    text: &[u8],
    piece: Piece,
    repairs: &mut Repairs,
) -> Datum {
    match piece.sort {
        Sort::Missing => Datum::Null,
        Sort::Text | Sort::Escaped => Datum::Str(strings.intern_value(&decode(text, piece, repairs))),
        Sort::Nested => Datum::Json(strings.intern_value(&decode(text, piece, repairs))),
        Sort::Number => number(piece.of(text)),
        Sort::Word => word(strings, text, piece, repairs),
    }
}

fn word(strings: &mut StringTableBuilder, text: &[u8], piece: Piece, repairs: &mut Repairs) -> Datum {
    let raw = piece.of(text);
    match raw {
        b"true" | b"True" => Datum::Bool(true),
        b"false" | b"False" => Datum::Bool(false),
        b"" | b"null" | b"None" => Datum::Null,
        _ => match float_word(raw) {
            Some(value) => Datum::Float(value),
            None => Datum::Str(intern(strings, text, piece, repairs)),
        },
    }
}

fn float_word(raw: &[u8]) -> Option<f64> {
    let (negative, name) = match raw {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
    let value = if is(b"nan") {
        f64::NAN
    } else if is(b"inf") || is(b"infinity") {
        f64::INFINITY
    } else {
        return None;
    };
    Some(if negative { -value } else { value })
}

/// A number: an integer if it is one that fits, else the nearest float.
#[inline]
pub(crate) fn number(raw: &[u8]) -> Datum {
    if let Some(value) = integer(raw) {
        return Datum::Int(value);
    }
    let Ok(text) = std::str::from_utf8(raw) else { return Datum::Null };
    match text.parse::<u64>() {
        Ok(value) => Datum::UInt(value),
        Err(_) => text.parse().map_or(Datum::Null, Datum::Float),
    }
}

/// A 64-bit integer.
#[inline]
pub(crate) fn integer(raw: &[u8]) -> Option<i64> {
    let (negative, digits) = match raw {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: i64 = 0;
    for &byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        let step = if negative { -digit } else { digit };
        value = value.checked_mul(10)?.checked_add(step)?;
    }
    Some(value)
}

/// A time in microseconds, read digit by digit into picoseconds: a float would lose them for times since the
/// epoch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Micros {
    pub(crate) ps: i128,
    /// True if it was a whole number of microseconds.
    pub(crate) whole: bool,
}

/// Reads a time, quoted or not. Rounds to the nearest picosecond and clamps absurd values.
#[inline]
pub(crate) fn micros(text: &[u8], piece: Piece) -> Option<Micros> {
    let raw = match piece.sort {
        Sort::Number => piece.of(text),
        Sort::Text => piece.of(text).trim_ascii(),
        _ => return None,
    };
    let (negative, digits) = match raw {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        all => (false, all),
    };
    let (ps, whole) = match plain_micros(digits) {
        Some(plain) => plain,
        None => {
            let (mantissa, exponent) = decimal(digits)?;
            let ps = scale(mantissa, exponent.saturating_add(PS_PER_US_DIGITS));
            (ps, ps % 1_000_000 == 0)
        }
    };
    Some(Micros { ps: if negative { -ps } else { ps }, whole })
}

/// The same for what nearly all times are, with hardly any arithmetic of 128 bits: at most 18 digits, a point, at most 6 more.
#[inline]
fn plain_micros(text: &[u8]) -> Option<(i128, bool)> {
    let mut whole = 0_u64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        whole = whole.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    if at == 0 || at > 18 {
        return None;
    }
    let fraction = match text.get(at..)? {
        [] => return Some((i128::from(whole) * 1_000_000, true)),
        [b'.', fraction @ ..] if fraction.len() <= PS_PER_US_DIGITS as usize => fraction,
        _ => return None,
    };
    let mut part = 0_u64;
    for place in 0..PS_PER_US_DIGITS as usize {
        let digit = fraction.get(place).map_or(0, |byte| byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        part = part * 10 + u64::from(digit);
    }
    Some((i128::from(whole) * 1_000_000 + i128::from(part), part == 0))
}

/// The digits of a decimal number as one integer, and its power of ten.
#[inline]
fn decimal(text: &[u8]) -> Option<(u128, i64)> {
    /// More digits exceed any precision.
    const ENOUGH: u128 = 10u128.pow(36);
    let (mut mantissa, mut exponent, mut point, mut any) = (0u128, 0i64, false, false);
    for (i, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if mantissa < ENOUGH {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    exponent -= i64::from(point);
                } else {
                    exponent += i64::from(!point);
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if any => {
                let power = &text[i + 1..];
                let negative = power.first() == Some(&b'-');
                let huge = if negative { -1_000_000 } else { 1_000_000 };
                let is_number = power.iter().skip(1).all(u8::is_ascii_digit) && !power.is_empty();
                let power = integer(power).or(is_number.then_some(huge))?;
                return Some((mantissa, exponent.saturating_add(power)));
            }
            _ => return None,
        }
    }
    any.then_some((mantissa, exponent))
}

/// `mantissa * 10^exponent`, rounded and clamped to a range far beyond what a trace can contain.
#[inline]
fn scale(mantissa: u128, exponent: i64) -> i128 {
    const LIMIT: u128 = 10u128.pow(36);
    let scaled = match u32::try_from(exponent) {
        Ok(power) => 10u128.checked_pow(power).and_then(|factor| mantissa.checked_mul(factor)),
        Err(_) => {
            let divisor = u32::try_from(-exponent).ok().and_then(|power| 10u128.checked_pow(power));
            Some(divisor.map_or(0, |divisor| (mantissa + divisor / 2) / divisor))
        }
    };
    let scaled = if mantissa == 0 { 0 } else { scaled.unwrap_or(LIMIT).min(LIMIT) };
    i128::try_from(scaled).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ps(text: &str) -> Option<i128> {
        let piece = Piece { start: 0, end: text.len(), sort: Sort::Number };
        micros(text.as_bytes(), piece).map(|time| time.ps)
    }

    #[test]
    fn times_are_exact_to_the_picosecond() {
        assert_eq!(ps("1661203462672784"), Some(1_661_203_462_672_784_000_000));
        assert_eq!(ps("1661203462672784.123456"), Some(1_661_203_462_672_784_123_456));
        assert_eq!(ps("4996.4139999999998"), Some(4_996_414_000));
        assert_eq!(ps("9.9999999999999995e-07"), Some(1));
        assert_eq!(ps("-0.5"), Some(-500_000));
        assert_eq!(ps("1.5E3"), Some(1_500_000_000));
        assert_eq!(ps("1e-400000000000000000000"), Some(0));
        assert_eq!(ps("0e400000000000000000000"), Some(0));
        assert!(ps("1e400000000000000000000").unwrap() > 1i128 << 100);
        assert!(ps(&"9".repeat(5_000)).unwrap() > 1i128 << 100);
        assert_eq!(ps(&format!("0.{}1", "0".repeat(5_000))), Some(0));
        assert_eq!(ps("62755911.346"), Some(62_755_911_346_000));
        assert_eq!(ps("999999999999999999.999999"), Some(999_999_999_999_999_999_999_999));
        assert_eq!(ps("9999999999999999999.5"), Some(9_999_999_999_999_999_999_500_000));
        assert_eq!(ps("-7."), Some(-7_000_000));
        assert_eq!(ps("0.0000005"), Some(1));
        assert_eq!(ps("1.2.3"), None);
        assert_eq!(ps("1.2x"), None);
        assert_eq!(ps("abc"), None);
        assert_eq!(ps(""), None);
    }

    #[test]
    fn plain_times_are_read_like_all_others() {
        for text in ["0", "1", "12.5", "0.000001", "123456789012345678.123456", "007.10", "5.", "1.000000"] {
            let (mantissa, exponent) = decimal(text.as_bytes()).unwrap();
            let exact = scale(mantissa, exponent + PS_PER_US_DIGITS);
            let (ps, whole) = plain_micros(text.as_bytes()).unwrap();
            assert_eq!((ps, whole), (exact, exact % 1_000_000 == 0), "{text}");
        }
        for other in ["", ".5", "1e3", "1.0000001", "1234567890123456789", "1.5e3", "12a", "1.2a"] {
            assert_eq!(plain_micros(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn escapes_are_resolved_and_bad_ones_kept() {
        let mut repairs = Repairs::default();
        let mut all = |raw: &str| unescape(raw, &mut repairs);
        assert_eq!(all(r#"a\"b\\c\/d\n\u00e9\ud83d\ude00"#), "a\"b\\c/d\né😀");
        assert_eq!(repairs, Repairs::default());
        let mut all = |raw: &str| unescape(raw, &mut repairs);
        assert_eq!(all(r"C:\Users\x41 \u12 \ud800!"), "C:\\Users\\x41 \\u12 \u{fffd}!");
        assert_ne!(repairs, Repairs::default());
    }

    #[test]
    fn integers_keep_their_whole_range() {
        assert_eq!(number(b"-9223372036854775808"), Datum::Int(i64::MIN));
        assert_eq!(number(b"18446744073709551615"), Datum::UInt(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), Datum::Float(18_446_744_073_709_551_616.0));
        assert_eq!(number(b"1.25"), Datum::Float(1.25));
    }
}
