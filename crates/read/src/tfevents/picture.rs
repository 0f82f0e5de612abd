//! Pictures by their own first bytes: PNG, JPEG and GIF, and nothing else. Whatever a log calls a picture may be a page with a script.

/// How a picture is encoded, and how large it is when it is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Its media type.
    pub kind: &'static str,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

/// Segments of a JPEG before its size.
const MOST_SEGMENTS: usize = 1_000;

/// What the first bytes say; `None` if it is none of the three, or its size is not there.
pub fn recognise(bytes: &[u8]) -> Option<Encoded> {
    let found = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        png(bytes)
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        gif(bytes)
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        jpeg(bytes)
    } else {
        None
    };
    found.filter(|found| found.width > 0 && found.height > 0)
}

fn png(bytes: &[u8]) -> Option<Encoded> {
    let head = bytes.get(8..24)?;
    if head.get(4..8)? != b"IHDR" {
        return None;
    }
    let (width, height) = (head.get(8..12)?.try_into().ok()?, head.get(12..16)?.try_into().ok()?);
    Some(Encoded { kind: "image/png", width: u32::from_be_bytes(width), height: u32::from_be_bytes(height) })
}

fn gif(bytes: &[u8]) -> Option<Encoded> {
    let size = |at: usize| Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    Some(Encoded { kind: "image/gif", width: size(6)?, height: size(8)? })
}

fn jpeg(bytes: &[u8]) -> Option<Encoded> {
    let mut at = 2_usize;
    for _ in 0..MOST_SEGMENTS {
        let [0xff, marker, high, low, ..] = *bytes.get(at..)? else { return None };
        // Frames: C0 to CF without the tables among them.
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let frame = bytes.get(at + 5..at + 9)?;
            let size = |at: usize| Some(u32::from(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?)));
            return Some(Encoded { kind: "image/jpeg", height: size(0)?, width: size(2)? });
        }
        at = at.checked_add(2 + usize::from(u16::from_be_bytes([high, low])).max(2))?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x0c\x08\x02";
    const GIF: &[u8] = b"GIF89a\x10\0\x0c\0";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x04JF\xff\xc0\0\x0b\x08\0\x0c\0\x10\x03";

    #[test]
    fn pictures_are_told_by_their_own_bytes() {
        for (bytes, kind) in [(PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg")] {
            assert_eq!(recognise(bytes), Some(Encoded { kind, width: 16, height: 12 }));
        }
    }

    #[test]
    fn pages_and_drawings_with_scripts_are_no_pictures() {
        let others: [&[u8]; 7] = [
            b"",
            b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
            b"<!doctype html><script>alert(1)</script>",
            b"RIFF\0\0\0\0WEBPVP8 ",
            b"%PDF-1.4",
            b"GIF<script>",
            b"\x89PNG\r\n\x1a\n\0\0\0\rJUNK\0\0\0\x10\0\0\0\x0c",
        ];
        for bytes in others {
            assert_eq!(recognise(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn cut_and_endless_pictures_are_none() {
        for whole in [PNG, GIF, JPEG] {
            for cut in 0..whole.len() - 3 {
                recognise(&whole[..cut]);
            }
        }
        assert_eq!(recognise(&[&[0xff, 0xd8][..], &[0xff, 0xe0, 0, 2].repeat(5_000)].concat()), None);
    }
}
