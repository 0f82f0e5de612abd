//! Lists: one folder, page by page, or a tree of folders. A tree is descended folder by folder, many at once, and only into
//! those that the caller's rules allow: buckets hold checkpoints and data sets beside logs, millions of objects that nobody
//! must list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use object_store::ObjectMeta;
use object_store::list::PaginatedListOptions;

use crate::bucket::Bucket;
use crate::error::{Error, Kind};
use crate::location::Location;

/// Requests for lists at once.
const AT_ONCE: usize = 32;
/// Keys that a search lists at most, in all folders.
const MOST_KEYS: u64 = 200_000;
/// Folders below each other, at most.
const DEEPEST: usize = 40;
/// After this many pages without a name that matters, a folder is skipped: it holds something else.
const PATIENCE_PAGES: u32 = 20;

/// What matters to the caller, by name.
#[derive(Copy, Clone, Debug)]
pub struct Rules {
    /// Whether a folder of this name is looked into.
    pub descend: fn(&str) -> bool,
    /// Whether an object of this name is looked at.
    pub take: fn(&str) -> bool,
    /// How many bytes of its beginning are needed to recognise it.
    pub head: fn(&str) -> usize,
}

/// What a store says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its size.
    pub bytes: u64,
    /// When it was written.
    pub modified: SystemTime,
    /// Its version.
    pub etag: Option<String>,
}

impl From<&ObjectMeta> for Object {
    fn from(meta: &ObjectMeta) -> Self {
        Object { bytes: meta.size, modified: meta.last_modified.into(), etag: meta.e_tag.clone() }
    }
}

/// What matters in a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folder {
    /// Folders in it.
    pub(crate) folders: BTreeSet<String>,
    /// Objects in it.
    pub(crate) objects: BTreeMap<String, Object>,
    /// Whether there is anything at all, whether it matters or not.
    pub(crate) exists: bool,
}

/// Keys that were listed: in one search, which has a limit, and in all.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    search: AtomicU64,
    all: &'a AtomicU64,
}

impl<'a> Listed<'a> {
    pub(crate) fn new(all: &'a AtomicU64) -> Self {
        Listed { search: AtomicU64::new(0), all }
    }

    fn add(&self, keys: u64) {
        self.search.fetch_add(keys, Ordering::Relaxed);
        self.all.fetch_add(keys, Ordering::Relaxed);
    }

    fn too_many(&self) -> bool {
        self.search.load(Ordering::Relaxed) > MOST_KEYS
    }
}

/// Lists one folder.
pub(crate) async fn folder(
    bucket: &Bucket,
    location: &Location,
    rules: Rules,
    listed: &Listed<'_>,
) -> Result<Folder, Error> {
    let Some(store) = &bucket.folders else { return Err(Error::at(location, Kind::NoFolder)) };
    let prefix = location.prefix();
    let (mut found, mut token, mut idle) = (Folder::default(), None::<String>, 0);
    loop {
        let options = PaginatedListOptions {
            delimiter: Some("/".into()),
            page_token: token.clone(),
            ..PaginatedListOptions::default()
        };
        let page = store.list_paginated(prefix.as_deref(), options).await;
        let page = page.map_err(|error| Error::of(location, &error))?;
        let (objects, folders) = (&page.result.objects, &page.result.common_prefixes);
        let keys = (objects.len() + folders.len()) as u64;
        listed.add(keys);
        found.exists |= keys > 0;
        let before = found.folders.len() + found.objects.len();
        let name = |path: &object_store::path::Path| path.filename().map(str::to_owned).unwrap_or_default();
        found
            .folders
            .extend(folders.iter().map(name).filter(|name| !name.is_empty() && (rules.descend)(name)));
        for meta in objects {
            let name = name(&meta.location);
            // An object may stand for the folder itself.
            let own = meta.location.as_ref() == location.key;
            if !own && !name.is_empty() && (rules.take)(&name) {
                found.objects.insert(name, Object::from(meta));
            }
        }
        idle = if found.folders.len() + found.objects.len() > before { 0 } else { idle + 1 };
        let next = page.page_token.filter(|next| !next.is_empty());
        if next.is_some() && next == token {
            return Err(Error::at(location, Kind::Answer("the list repeats its pages".to_owned())));
        }
        token = next;
        if token.is_none() || idle >= PATIENCE_PAGES {
            return Ok(found);
        }
        if listed.too_many() {
            return Err(Error::at(location, Kind::TooMany(MOST_KEYS)));
        }
    }
}

/// Lists a tree of folders, many at once. The list of its root may be known.
pub(crate) async fn tree(
    bucket: &Bucket,
    root: &Location,
    known: Option<Folder>,
    rules: Rules,
    listed: &Listed<'_>,
) -> Result<Vec<(Location, Folder)>, Error> {
    let mut found = Vec::new();
    let (mut waiting, mut running) = (vec![(root.clone(), 0, known)], FuturesUnordered::new());
    loop {
        while running.len() < AT_ONCE
            && let Some((location, depth, known)) = waiting.pop()
        {
            running.push(async move {
                let found = match known {
                    Some(known) => Ok(known),
                    None => folder(bucket, &location, rules, listed).await,
                };
                (location, depth, found)
            });
        }
        let Some((location, depth, folder)) = running.next().await else { return Ok(found) };
        let folder = folder?;
        if listed.too_many() {
            return Err(Error::at(root, Kind::TooMany(MOST_KEYS)));
        }
        if depth < DEEPEST {
            waiting.extend(folder.folders.iter().map(|name| (location.join(name), depth + 1, None)));
        }
        found.push((location, folder));
    }
}
