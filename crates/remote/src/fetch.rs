//! Objects: their beginning, or all of it as a local file without a name.
//!
//! A large object is copied in ranges, several at once, each straight to its place in the file, so that memory holds a few
//! network packets. Every range demands the version that the first one had: an object that is replaced meanwhile is an
//! error, never a mixture.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::{GetOptions, GetRange, GetResult, ObjectStore};
use tokio::sync::Semaphore;

use crate::bucket::Bucket;
use crate::error::{Error, Kind};
use crate::list::Object;
use crate::location::{Location, Scheme};
use crate::space;

/// Size of a range.
const RANGE: u64 = 8 << 20;
/// Ranges of one object at once.
const AT_ONCE: usize = 8;

/// Bytes that were copied, and that are to be.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) done: AtomicU64,
    pub(crate) total: AtomicU64,
    pub(crate) listed: AtomicU64,
}

/// What the copies of one process share.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    /// Ranges of all objects at once.
    pub(crate) ranges: Arc<Semaphore>,
    pub(crate) counters: Arc<Counters>,
}

/// What a store says about an object.
pub(crate) async fn look(bucket: &Bucket, location: &Location) -> Result<Object, Error> {
    let head = GetOptions { head: true, ..GetOptions::default() };
    let refused = match bucket.objects.get_opts(&location.path(), head).await {
        Ok(found) => return Ok(Object::from(&found.meta)),
        Err(error) => Error::of(location, &error),
    };
    if location.scheme != Scheme::Web || matches!(refused.kind, Kind::NoNetwork(_)) {
        return Err(refused);
    }
    // Signed URLs are often good for one method only.
    let (found, _) = begin(&*bucket.objects, location, 0..1, None).await.map_err(|_| refused)?;
    Ok(Object::from(&found.meta))
}

/// The first bytes of an object, as many as there are.
pub(crate) async fn head(bucket: &Bucket, location: &Location, bytes: usize) -> Result<Vec<u8>, Error> {
    let (found, _) = begin(&*bucket.objects, location, 0..bytes.max(1) as u64, None).await?;
    let mut head = Vec::with_capacity(bytes.min(1 << 20));
    let mut stream = found.into_stream();
    while head.len() < bytes
        && let Some(piece) = stream.next().await
    {
        let piece = piece.map_err(|error| Error::of(location, &error))?;
        head.extend_from_slice(piece.get(..(bytes - head.len()).min(piece.len())).unwrap_or_default());
    }
    Ok(head)
}

/// Copies an object to a file without a name.
pub(crate) async fn whole(
    bucket: &Bucket,
    location: &Location,
    transfers: &Transfers,
) -> Result<File, Error> {
    let store = &bucket.objects;
    let (first, ranged) = begin(&**store, location, 0..RANGE, None).await?;
    let object = Object::from(&first.meta);
    let folder = space::folder();
    if let Some(free) = space::lacks(&folder, object.bytes) {
        let place = folder.display().to_string();
        return Err(Error::at(location, Kind::NoSpace(object.bytes, free, place)));
    }
    let file = space::file(&folder).map_err(|error| disk(location, &folder, &error))?;
    transfers.counters.total.fetch_add(object.bytes, Ordering::Relaxed);
    let copy = Copy { location, object: &object, file: &file, counters: &transfers.counters };
    let begun = if ranged { 0..object.bytes.min(RANGE) } else { 0..object.bytes };
    let rest = begun.end;
    copy.take(first, begun).await?;
    let starts = (0..).map(|index| rest + index * RANGE).take_while(|start| *start < object.bytes);
    let ranges: Vec<Range<u64>> = starts.map(|start| start..(start + RANGE).min(object.bytes)).collect();
    let copies = futures_util::stream::iter(ranges).map(|range| {
        let copy = &copy;
        async move {
            // It is never closed; without a permit, there would only be more at once.
            let _permit = transfers.ranges.acquire().await;
            let (found, _) = begin(&**store, location, range.clone(), copy.object.etag.as_deref()).await?;
            copy.take(found, range).await
        }
    });
    copies.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(file)
}

/// Asks for a range of one version; returns also whether the answer is that range. A web server that knows no ranges
/// answers with the whole file.
async fn begin(
    store: &dyn ObjectStore,
    location: &Location,
    range: Range<u64>,
    etag: Option<&str>,
) -> Result<(GetResult, bool), Error> {
    // A weak etag never matches, so it is not sent; the etag of the answer is compared instead.
    let if_match = etag.filter(|etag| !etag.starts_with("W/")).map(str::to_owned);
    let asked = GetOptions {
        if_match: if_match.clone(),
        range: Some(GetRange::Bounded(range.clone())),
        ..GetOptions::default()
    };
    let failed = |error: object_store::Error| Error::of(location, &error);
    match store.get_opts(&location.path(), asked).await {
        Err(object_store::Error::NotSupported { .. })
            if location.scheme == Scheme::Web && range.start == 0 =>
        {
            let whole = GetOptions { if_match, ..GetOptions::default() };
            store.get_opts(&location.path(), whole).await.map(|found| (found, false)).map_err(failed)
        }
        other => other.map(|found| (found, true)).map_err(failed),
    }
}

/// A copy on its way.
struct Copy<'a> {
    location: &'a Location,
    object: &'a Object,
    file: &'a File,
    counters: &'a Counters,
}

impl Copy<'_> {
    /// Writes a range of the object, which must be of the same version.
    async fn take(&self, found: GetResult, range: Range<u64>) -> Result<(), Error> {
        let (same, size) = (found.meta.e_tag == self.object.etag, found.meta.size == self.object.bytes);
        if !same || !size {
            return Err(Error::at(self.location, Kind::Changed));
        }
        let mut at = range.start;
        let mut stream = found.into_stream();
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| Error::of(self.location, &error))?;
            let end = at.saturating_add(piece.len() as u64);
            if end > range.end {
                return Err(self.wrong_length("more"));
            }
            space::write_at(self.file, &piece, at)
                .map_err(|error| disk(self.location, &space::folder(), &error))?;
            self.counters.done.fetch_add(piece.len() as u64, Ordering::Relaxed);
            at = end;
        }
        if at < range.end { Err(self.wrong_length("fewer")) } else { Ok(()) }
    }

    fn wrong_length(&self, how: &str) -> Error {
        Error::at(self.location, Kind::Answer(format!("it sent {how} bytes than it announced")))
    }
}

fn disk(location: &Location, folder: &std::path::Path, error: &io::Error) -> Error {
    Error::at(location, Kind::Disk(format!("{}: {error}", folder.display())))
}
