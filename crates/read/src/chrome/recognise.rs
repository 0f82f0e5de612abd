//! Recognises a trace by its top-level keys, because any tool may write JSON.

use memchr::memmem;

use super::header::is_typical;
use super::scan::{Scanner, Stop, Within};

/// Whether a file that starts like this may be a trace.
pub(super) fn recognises(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut scanner = Scanner::new(head, 0);
    match scanner.peek() {
        Ok(b'{') => is_object(scanner),
        Ok(b'[') => is_array(scanner),
        _ => false,
    }
}

fn is_object(mut scanner: Scanner<'_>) -> bool {
    scanner.at += 1;
    let (mut first, mut typical) = (true, false);
    loop {
        match scanner.member(first) {
            Ok(Some(key)) if key.of(scanner.text) == b"traceEvents" => {
                return matches!(scanner.peek(), Ok(b'[') | Err(_));
            }
            Ok(Some(key)) => typical |= is_typical(key.of(scanner.text)),
            Ok(None) => return false,
            Err(Stop::More) => return typical,
            Err(_) => break,
        }
        first = false;
        match scanner.value(Within::Member) {
            Ok(_) => {}
            Err(Stop::More) => return typical,
            Err(_) => break,
        }
    }
    typical || memmem::find(scanner.text, b"\"traceEvents\"").is_some()
}

/// An array of objects, one of the first of which has a phase.
fn is_array(mut scanner: Scanner<'_>) -> bool {
    scanner.at += 1;
    let starts = scanner.peek() == Ok(b'{');
    starts && memmem::find_iter(scanner.text, b"\"ph\"").any(|at| scanner.is_key(at))
}
