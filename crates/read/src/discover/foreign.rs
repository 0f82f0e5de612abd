//! Files of other profilers, which are not read here: recognised by their first bytes, so that a message can say what they
//! are. What to do with them is said elsewhere.

use memchr::memmem;
use stepscope_wire::{Cursor, Payload, walk};

/// A kind of file that another tool wrote.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    /// nvprof's database (`.nvvp`, `.nvprof`) or log.
    Nvprof,
    /// Call stacks for speedscope.
    Speedscope,
    /// pprof's format, as Go and many others write it.
    Pprof,
    /// Linux perf's recording.
    Perf,
    /// Python's cProfile.
    CProfile,
    /// A V8 profile of Chrome or Node.
    V8Profile,
    /// Call stacks with counts, one per line.
    FoldedStacks,
    /// A heap dump of Java.
    JavaHeap,
    /// A heap snapshot of Chrome or Node.
    V8Heap,
    /// memray's recording.
    Memray,
    /// A heap profile of a C or C++ program: jemalloc, gperftools, massif.
    NativeHeap,
    /// A core dump.
    CoreDump,
    /// Tables of rocprofv3 as CSV.
    RocprofTable,
    /// The graph of a PyTorch program: an execution trace.
    ExecutionTrace,
    /// A Chakra trace.
    Chakra,
    /// Nsight Systems' recording before it is processed.
    NsightStream,
}

/// The kind of a file that starts like this.
pub(super) fn recognise(name: &str, head: &[u8]) -> Option<Foreign> {
    binary(head).or_else(|| json(head)).or_else(|| text(head)).or_else(|| {
        if name.ends_with(".qdstrm") {
            Some(Foreign::NsightStream)
        } else if name.ends_with(".et") && starts_like_chakra(head) {
            Some(Foreign::Chakra)
        } else {
            is_pprof(head).then_some(Foreign::Pprof)
        }
    })
}

fn binary(head: &[u8]) -> Option<Foreign> {
    let has = |part: &[u8]| memmem::find(head, part).is_some();
    if head.starts_with(b"SQLite format 3\0") {
        // nvprof's tables have the names that Nsight Systems took over, but another table of strings.
        return (has(b"TABLE StringTable") && has(b"CUPTI_ACTIVITY_KIND")).then_some(Foreign::Nvprof);
    }
    if head.starts_with(b"PERFILE2") || head.starts_with(b"PERFFILE") {
        Some(Foreign::Perf)
    } else if head.starts_with(b"JAVA PROFILE 1.0") {
        Some(Foreign::JavaHeap)
    } else if head.starts_with(b"memray\0")
        || head.starts_with(b"memray") && head.get(6).is_some_and(|b| *b < 32)
    {
        Some(Foreign::Memray)
    } else if head.starts_with(b"\x7fELF") && head.get(16..18) == Some(&[4, 0]) {
        Some(Foreign::CoreDump)
    } else if is_marshalled_profile(head) {
        Some(Foreign::CProfile)
    } else {
        None
    }
}

/// Python's own format of a dictionary whose first key is a tuple (file, line, function).
fn is_marshalled_profile(head: &[u8]) -> bool {
    let Some((b'{', rest)) = head.split_first() else { return false };
    // A tuple of three, then a text, each possibly marked as referenced again.
    matches!(rest, [0x29 | 0xa9, 3, text, ..] if matches!(text & 0x7f, b'z' | b'Z' | b'u' | b'a' | b'A'))
}

fn json(head: &[u8]) -> Option<Foreign> {
    let start = head.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if !matches!(head.get(start), Some(b'{' | b'[')) {
        return None;
    }
    let first = head.get(start..head.len().min(start + 4_096)).unwrap_or_default();
    let has = |part: &str| memmem::find(first, part.as_bytes()).is_some();
    if has("speedscope.app/file-format-schema") {
        Some(Foreign::Speedscope)
    } else if has("\"snapshot\"") && has("\"node_fields\"") {
        Some(Foreign::V8Heap)
    } else if has("\"nodes\"") && (has("\"callFrame\"") || has("\"hitCount\"")) {
        Some(Foreign::V8Profile)
    } else if has("\"schema\"")
        && has("\"nodes\"")
        && (has("\"ctrl_deps\"") || has("\"rf_id\"") || has("chakra"))
    {
        Some(Foreign::ExecutionTrace)
    } else {
        None
    }
}

fn text(head: &[u8]) -> Option<Foreign> {
    let text = std::str::from_utf8(head.get(..head.len().min(4_096))?).ok().or_else(|| {
        // The last character may be cut.
        let cut = head.get(..head.len().min(4_096))?;
        (0..4).find_map(|less| std::str::from_utf8(cut.get(..cut.len().checked_sub(less)?)?).ok())
    })?;
    if text.starts_with("heap_v2/") || text.starts_with("heap profile:") || text.starts_with("desc: --") {
        return Some(Foreign::NativeHeap);
    }
    if text.starts_with("==") && text.lines().take(20).any(|line| line.contains("== NVPROF is profiling")) {
        return Some(Foreign::Nvprof);
    }
    let header = text.lines().next()?;
    if header.starts_with("\"Kind\"") && (header.contains("_Id\"") || header.contains("\"Function\"")) {
        return Some(Foreign::RocprofTable);
    }
    let folded = |line: &str| {
        line.rsplit_once(' ').is_some_and(|(stack, count)| {
            stack.contains(';') && count.bytes().all(|byte| byte.is_ascii_digit()) && !count.is_empty()
        })
    };
    let mut lines = text.lines().take(5).peekable();
    (lines.peek().is_some() && text.lines().count() >= 3 && lines.all(folded))
        .then_some(Foreign::FoldedStacks)
}

/// A list of types of values, then samples, places, functions and strings.
fn is_pprof(head: &[u8]) -> bool {
    let mut cursor = Cursor::new(head, 0..head.len());
    let (mut types, mut samples) = (0, 0);
    while let Ok(Some(field)) = cursor.field() {
        match (field.number, field.value) {
            (1, Payload::Len(range)) if samples == 0 && types < 16 => {
                let mut fields = 0;
                let broken = walk(head, range, |field| {
                    fields += if matches!((field.number, field.value), (1 | 2, Payload::Varint(_))) {
                        1
                    } else {
                        9
                    };
                });
                if broken.is_some() || fields == 0 || fields > 2 {
                    return false;
                }
                types += 1;
            }
            (2, Payload::Len(_) | Payload::Cut(_)) if types > 0 => samples += 1,
            (3..=6 | 11, Payload::Len(_) | Payload::Cut(_)) if samples > 0 => {}
            (7..=10 | 12..=15, _) if samples > 0 => {}
            _ => return false,
        }
    }
    types > 0 && samples > 0
}

/// A message with a length before it, whose first field is the version as text.
fn starts_like_chakra(head: &[u8]) -> bool {
    let mut cursor = Cursor::new(head, 0..head.len());
    let Ok(range) = cursor.skip_len() else { return false };
    let mut first = Cursor::new(head, range);
    matches!(first.field(), Ok(Some(field)) if field.number == 1 && matches!(field.value, Payload::Len(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_testkit::pprof::{PprofFile, sample};

    #[test]
    fn files_of_other_tools_are_known_by_their_first_bytes() {
        let mut pprof = PprofFile::new([("samples", "count"), ("cpu", "nanoseconds")]);
        let place = pprof.location("main", "main.go", 1);
        pprof.sample(&sample(&[place], 1, 10_000));
        let nvprof = [
            &b"SQLite format 3\0"[..],
            b"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL",
            b"CREATE TABLE StringTable",
        ];
        let cases: Vec<(&str, Vec<u8>, Foreign)> = vec![
            ("cpu.pprof", pprof.bytes(), Foreign::Pprof),
            ("a.nvvp", nvprof.concat(), Foreign::Nvprof),
            ("log", b"==12== NVPROF is profiling process 12, command: ./a\n".to_vec(), Foreign::Nvprof),
            ("perf.data", b"PERFILE2\x68\0\0\0".to_vec(), Foreign::Perf),
            ("a.hprof", b"JAVA PROFILE 1.0.2\0\0\0".to_vec(), Foreign::JavaHeap),
            ("core", [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[4, 0]].concat(), Foreign::CoreDump),
            ("out.prof", b"{\xa9\x03\xfa\x01~\xe9".to_vec(), Foreign::CProfile),
            (
                "a.json",
                br#"{"$schema":"https://www.speedscope.app/file-format-schema.json"}"#.to_vec(),
                Foreign::Speedscope,
            ),
            (
                "a.heapsnapshot",
                br#"{"snapshot":{"meta":{"node_fields":["type"]}}}"#.to_vec(),
                Foreign::V8Heap,
            ),
            ("a.cpuprofile", br#"{"nodes":[{"id":1,"callFrame":{}}]}"#.to_vec(), Foreign::V8Profile),
            (
                "et.json",
                br#"{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]}"#.to_vec(),
                Foreign::ExecutionTrace,
            ),
            ("heap", b"heap_v2/524288\n  t*: 1: 2\n".to_vec(), Foreign::NativeHeap),
            ("k.csv", b"\"Kind\",\"Agent_Id\",\"Queue_Id\"\n".to_vec(), Foreign::RocprofTable),
            ("s.txt", b"main;a;b 12\nmain;c 3\nmain 4;x 5\n".to_vec(), Foreign::FoldedStacks),
            ("x.qdstrm", b"\x01\x02".to_vec(), Foreign::NsightStream),
        ];
        for (name, head, kind) in cases {
            assert_eq!(recognise(name, &head), Some(kind), "{name}");
            // Damage never ends in a panic, and never in another tool's name by accident.
            for end in 0..head.len() {
                recognise(name, &head[..end]);
            }
        }
    }

    #[test]
    fn other_files_stay_unknown() {
        for head in [
            &b""[..],
            b"hello world\n",
            b"{}",
            b"[1, 2]",
            b"\x0a\x02\x08\x01",
            b"a b c\nd e f\n",
            b"{\"a\": 1}",
        ] {
            assert_eq!(recognise("x", head), None, "{head:?}");
        }
    }
}
