//! Arrow's C stream interface: three structs of the C ABI, as <https://arrow.apache.org/docs/format/CStreamInterface.html>
//! defines them. A frame is one batch. Nothing is copied: each exported array holds the frame until its consumer
//! releases it, from whichever thread.
#![expect(unsafe_code, reason = "the interface is defined by C structs with pointers and callbacks")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use crate::column::{Codes, Column, Frame, Values, Words};

/// A column may hold unknown values.
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: the pointers lead to memory that the struct owns, or to a shared, immutable frame; the interface allows a
// consumer to release them from any thread.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

/// Drops what was not passed on: a consumer that takes a struct over clears `release`.
macro_rules! releases {
    ($($name:ident),*) => {$(
        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: `release` is the callback that was set together with `private_data`, and is still set, so
                    // nobody has released the struct.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}
releases!(ArrowSchema, ArrowArray, ArrowArrayStream);

/// What a schema points to.
struct SchemaOwned {
    format: CString,
    name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

/// What an array points to.
struct ArrayOwned {
    /// Keeps the buffers alive.
    _frame: Arc<Frame>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

/// What a stream points to.
struct StreamOwned {
    frame: Arc<Frame>,
    done: bool,
}

impl ArrowSchema {
    /// The schema of a frame: a struct with one field per column.
    pub fn of(frame: &Frame) -> Self {
        Self::new("+s", "", 0, frame.columns().iter().map(Self::of_column).collect(), None)
    }

    fn of_column(column: &Column) -> Self {
        let (format, dictionary) = match &column.values {
            Values::Int(_) => ("l", None),
            Values::Float(_) => ("g", None),
            Values::Bool { .. } => ("b", None),
            Values::Text(_) => ("U", None),
            Values::Code { codes, .. } => {
                let format = match codes {
                    Codes::I8(_) => "c",
                    Codes::I16(_) => "s",
                    Codes::I32(_) => "i",
                };
                (format, Some(Self::new("U", "", NULLABLE, Vec::new(), None)))
            }
        };
        Self::new(format, &column.name, NULLABLE, Vec::new(), dictionary)
    }

    fn new(format: &str, name: &str, flags: i64, children: Vec<Self>, dictionary: Option<Self>) -> Self {
        let mut owned = Box::new(SchemaOwned {
            // A name ends where C would end it.
            format: CString::new(format).unwrap_or_default(),
            name: CString::new(name.split('\0').next().unwrap_or_default()).unwrap_or_default(),
            children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            dictionary: dictionary.map_or(ptr::null_mut(), |words| Box::into_raw(Box::new(words))),
        });
        ArrowSchema {
            format: owned.format.as_ptr(),
            name: owned.name.as_ptr(),
            metadata: ptr::null(),
            flags,
            n_children: length(owned.children.len()),
            children: owned.children.as_mut_ptr(),
            dictionary: owned.dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(owned).cast(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the consumer passes the struct that it got, which is alive and was made by `ArrowSchema::new`.
    let Some(schema) = (unsafe { schema.as_mut() }) else { return };
    schema.release = None;
    // SAFETY: `private_data` is the box that `ArrowSchema::new` made; `release` was set, so nobody took it.
    let owned = unsafe { Box::from_raw(schema.private_data.cast::<SchemaOwned>()) };
    for child in owned.children.iter().copied().chain([owned.dictionary]).filter(|child| !child.is_null()) {
        // SAFETY: children are boxes of ours; one that the consumer moved away has no `release` any more.
        drop(unsafe { Box::from_raw(child) });
    }
}

impl ArrowArray {
    /// All rows of a frame.
    fn of(frame: &Arc<Frame>) -> Self {
        let children = frame.columns().iter().map(|column| Self::of_column(frame, column)).collect();
        Self::new(frame, frame.rows(), 0, vec![ptr::null()], children, None)
    }

    fn of_column(frame: &Arc<Frame>, column: &Column) -> Self {
        let valid = column.validity().map_or(ptr::null(), |bits| bits.as_ptr().cast());
        let (buffers, dictionary) = match &column.values {
            Values::Int(values) => (vec![valid, values.as_ptr().cast()], None),
            Values::Float(values) => (vec![valid, values.as_ptr().cast()], None),
            Values::Bool { bits, .. } => (vec![valid, bits.as_ptr().cast()], None),
            Values::Text(words) => (text(valid, words), None),
            Values::Code { codes, words } => {
                let set = Self::new(frame, words.len(), 0, text(ptr::null(), words), Vec::new(), None);
                let codes = match codes {
                    Codes::I8(codes) => codes.as_ptr().cast(),
                    Codes::I16(codes) => codes.as_ptr().cast(),
                    Codes::I32(codes) => codes.as_ptr().cast(),
                };
                (vec![valid, codes], Some(set))
            }
        };
        Self::new(frame, frame.rows(), column.nulls(), buffers, Vec::new(), dictionary)
    }

    fn new(
        frame: &Arc<Frame>,
        rows: usize,
        nulls: usize,
        buffers: Vec<*const c_void>,
        children: Vec<Self>,
        dictionary: Option<Self>,
    ) -> Self {
        let mut owned = Box::new(ArrayOwned {
            _frame: Arc::clone(frame),
            buffers,
            children: children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect(),
            dictionary: dictionary.map_or(ptr::null_mut(), |words| Box::into_raw(Box::new(words))),
        });
        ArrowArray {
            length: length(rows),
            null_count: length(nulls),
            offset: 0,
            n_buffers: length(owned.buffers.len()),
            n_children: length(owned.children.len()),
            buffers: owned.buffers.as_mut_ptr(),
            children: owned.children.as_mut_ptr(),
            dictionary: owned.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(owned).cast(),
        }
    }
}

fn text(valid: *const c_void, words: &Words) -> Vec<*const c_void> {
    vec![valid, words.ends().as_ptr().cast(), words.bytes().as_ptr().cast()]
}

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the consumer passes the struct that it got, which is alive and was made by `ArrowArray::new`.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    array.release = None;
    // SAFETY: `private_data` is the box that `ArrowArray::new` made; `release` was set, so nobody took it.
    let owned = unsafe { Box::from_raw(array.private_data.cast::<ArrayOwned>()) };
    for child in owned.children.iter().copied().chain([owned.dictionary]).filter(|child| !child.is_null()) {
        // SAFETY: children are boxes of ours; one that the consumer moved away has no `release` any more.
        drop(unsafe { Box::from_raw(child) });
    }
}

impl ArrowArrayStream {
    /// A stream of one batch: all rows of the frame.
    pub fn of(frame: Arc<Frame>) -> Self {
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(Box::new(StreamOwned { frame, done: false })).cast(),
        }
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer passes a stream that it has not released, so `private_data` is ours and alive.
    let owned = unsafe { &*(*stream).private_data.cast::<StreamOwned>() };
    // SAFETY: `out` is memory for one struct that the consumer provides, with no meaningful content.
    unsafe { ptr::write(out, ArrowSchema::of(&owned.frame)) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`; a stream is used by one thread at a time.
    let owned = unsafe { &mut *(*stream).private_data.cast::<StreamOwned>() };
    let next = if owned.done { ended() } else { ArrowArray::of(&owned.frame) };
    owned.done = true;
    // SAFETY: as in `get_schema`.
    unsafe { ptr::write(out, next) };
    0
}

/// The end of a stream is an array without `release`.
fn ended() -> ArrowArray {
    ArrowArray {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null_mut(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private_data: ptr::null_mut(),
    }
}

/// No call fails.
unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: the consumer passes the struct that it got, which is alive and was made by `ArrowArrayStream::of`.
    let Some(stream) = (unsafe { stream.as_mut() }) else { return };
    stream.release = None;
    // SAFETY: `private_data` is the box that `ArrowArrayStream::of` made; `release` was set, so nobody took it.
    drop(unsafe { Box::from_raw(stream.private_data.cast::<StreamOwned>()) });
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    use super::*;

    fn frame() -> Arc<Frame> {
        let words = |all: &[&str]| {
            let mut words = Words::default();
            all.iter().for_each(|word| words.push(word));
            words
        };
        Arc::new(Frame::new(vec![
            Column::new("n", Values::Int(vec![1, 2, 3])),
            Column::with_nulls("x", Values::Float(vec![0.5, 0.0, 1.5]), [true, false, true]),
            Column::new("t\0hidden", Values::Text(words(&["a", "", "ü"]))),
            Column::new(
                "c",
                Values::Code { codes: Codes::I16(vec![1, 0, 1]), words: Arc::new(words(&["host", "gpu"])) },
            ),
        ]))
    }

    /// What a consumer does: takes the schema and all batches.
    fn consume(stream: &mut ArrowArrayStream) -> (ArrowSchema, Vec<ArrowArray>) {
        let mut schema = MaybeUninit::uninit();
        // SAFETY: the stream is alive, and `schema` is memory for one struct.
        let schema = unsafe {
            assert_eq!(stream.get_schema.unwrap()(stream, schema.as_mut_ptr()), 0);
            schema.assume_init()
        };
        let mut batches = Vec::new();
        loop {
            let mut next = MaybeUninit::uninit();
            // SAFETY: as above.
            let next = unsafe {
                assert_eq!(stream.get_next.unwrap()(stream, next.as_mut_ptr()), 0);
                next.assume_init()
            };
            if next.release.is_none() {
                return (schema, batches);
            }
            batches.push(next);
        }
    }

    #[test]
    fn a_consumer_sees_the_frames_own_memory_and_frees_it_in_any_order() {
        let frame = frame();
        let mut stream = ArrowArrayStream::of(Arc::clone(&frame));
        let (schema, mut batches) = consume(&mut stream);
        drop(stream);
        assert_eq!((batches.len(), batches[0].length, schema.n_children), (1, 3, 4));
        // SAFETY: the schema is alive and has four children with names and formats.
        let names: Vec<(&str, &str)> = (0..4)
            .map(|place| unsafe {
                let child = &**schema.children.add(place);
                let text = |at: *const c_char| CStr::from_ptr(at).to_str().unwrap();
                (text(child.name), text(child.format))
            })
            .collect();
        assert_eq!(names, [("n", "l"), ("x", "g"), ("t", "U"), ("c", "s")]);
        let batch = batches.remove(0);
        // A consumer may move a child out and release its parent first.
        // SAFETY: the batch is alive and has four children; the moved one is marked as the interface demands.
        let moved = unsafe {
            let child = *batch.children.add(1);
            let moved = ptr::read(child);
            (*child).release = None;
            moved
        };
        drop(batch);
        drop(schema);
        assert_eq!((moved.null_count, moved.n_buffers), (1, 2));
        // SAFETY: the moved child has two buffers, the second of three numbers.
        let values = unsafe { std::slice::from_raw_parts((*moved.buffers.add(1)).cast::<f64>(), 3) };
        let Values::Float(own) = &frame.columns()[1].values else { panic!("a column of numbers") };
        assert_eq!((values, values.as_ptr()), (&own[..], own.as_ptr()), "not copied");
        assert_eq!(Arc::strong_count(&frame), 2, "the moved child still holds the frame");
        drop(moved);
        assert_eq!(Arc::strong_count(&frame), 1);
    }

    #[test]
    fn what_nobody_takes_is_freed() {
        let frame = frame();
        drop(ArrowArrayStream::of(Arc::clone(&frame)));
        drop(ArrowSchema::of(&frame));
        assert_eq!(Arc::strong_count(&frame), 1);
    }
}
