//! Servers that answer as a test wants: a script for single answers, and a bucket that speaks as much of S3 as is read.
#![allow(dead_code, reason = "each test file uses a part")]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: BTreeMap<String, String>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The range of bytes that is asked for, its end exclusive.
    pub fn range(&self) -> Option<(usize, usize)> {
        let (from, to) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, to.parse::<usize>().ok()? + 1))
    }

    /// A value of the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.path.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| decoded(value)).next()
    }
}

fn decoded(text: &str) -> String {
    let (mut out, mut bytes) = (Vec::new(), text.bytes());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
            let digits = std::str::from_utf8(&digits).unwrap_or("00");
            out.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
        } else {
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The length that is announced, if it is not that of the body.
    pub claims: Option<u64>,
    /// Sends the body again and again until nobody listens.
    pub endless: bool,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Answer { status, body: body.into(), ..Answer::default() }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn claiming(mut self, bytes: u64) -> Self {
        self.claims = Some(bytes);
        self
    }
}

/// A server on this machine, until the test ends.
pub struct Server {
    /// Its address, without a slash at the end.
    pub url: String,
    pub asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (log.clone(), answer.clone());
                std::thread::spawn(move || talk(stream, &log, &*answer));
            }
        });
        Server { url, asked }
    }

    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

fn talk(stream: TcpStream, log: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Answer) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut out = stream;
    // Two small writes would wait for each other.
    out.set_nodelay(true).ok()?;
    loop {
        let asked = request(&mut reader)?;
        log.lock().unwrap().push(asked.clone());
        let Answer { status, headers, body, claims, endless } = answer(&asked);
        let length = claims.unwrap_or(body.len() as u64);
        let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n");
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let mut bytes = format!("{head}\r\n").into_bytes();
        if asked.method != "HEAD" {
            bytes.extend_from_slice(&body);
        }
        out.write_all(&bytes).ok()?;
        if endless {
            loop {
                out.write_all(&body).ok()?;
            }
        }
        if claims.is_some() {
            return None;
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.to_owned())),
            None => return Some(Asked { method, path, headers }),
        }
    }
}

const DATE: &str = "Tue, 17 Nov 2026 10:00:00 GMT";

/// An object as a server that knows ranges and versions gives it.
pub fn object(asked: &Asked, body: &[u8], etag: &str) -> Answer {
    if asked.header("if-match").is_some_and(|wanted| wanted != etag) {
        return Answer::new(412, "");
    }
    let answer =
        |status: u16, part: &[u8]| Answer::new(status, part).with("ETag", etag).with("Last-Modified", DATE);
    match asked.range() {
        Some((from, _)) if from >= body.len() => answer(416, b""),
        Some((from, to)) => {
            let to = to.min(body.len());
            let range = format!("bytes {from}-{}/{}", to - 1, body.len());
            answer(206, &body[from..to]).with("Content-Range", range)
        }
        None => answer(200, body),
    }
}

/// A bucket called `bucket` of S3 or Google: lists by prefix and delimiter in pages, and objects.
pub fn bucket(objects: BTreeMap<String, Vec<u8>>) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| match key(asked, "/bucket") {
        None => Answer::new(404, "<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>"),
        Some(key) if key.is_empty() => {
            let (rows, next) = page(asked, "continuation-token", &objects);
            let row = |(name, bytes): &(String, Option<usize>)| match bytes {
                None => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
                Some(bytes) => format!(
                    "<Contents><Key>{name}</Key><Size>{bytes}</Size><LastModified>2026-11-17T10:00:00.000Z</LastModified>\
                     <ETag>\"{name}\"</ETag></Contents>"
                ),
            };
            let rows: String = rows.iter().map(row).collect();
            let next = next.map_or(String::new(), |next| {
                format!("<NextContinuationToken>{next}</NextContinuationToken>")
            });
            Answer::new(
                200,
                format!("<?xml version=\"1.0\"?><ListBucketResult>{rows}{next}</ListBucketResult>"),
            )
        }
        Some(key) => found(asked, &key, &objects),
    }
}

/// The same as the container `bucket` of an emulator of Azure.
pub fn container(objects: BTreeMap<String, Vec<u8>>) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| match key(asked, "/devstoreaccount1/bucket") {
        None => Answer::new(
            404,
            "<Error><Code>ContainerNotFound</Code><Message>no such container</Message></Error>",
        ),
        Some(key) if key.is_empty() => {
            let (rows, next) = page(asked, "marker", &objects);
            let row = |(name, bytes): &(String, Option<usize>)| match bytes {
                None => format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>"),
                Some(bytes) => format!(
                    "<Blob><Name>{name}</Name><Properties><Last-Modified>{DATE}</Last-Modified><Etag>0x1</Etag>\
                     <Content-Length>{bytes}</Content-Length><Content-Type>x</Content-Type></Properties></Blob>"
                ),
            };
            let rows: String = rows.iter().map(row).collect();
            let next = next.unwrap_or_default();
            let xml = format!("<Blobs>{rows}</Blobs><NextMarker>{next}</NextMarker>");
            Answer::new(200, format!("<?xml version=\"1.0\"?><EnumerationResults>{xml}</EnumerationResults>"))
        }
        Some(key) => found(asked, &key, &objects),
    }
}

/// The key that is asked for; empty for the bucket itself.
fn key(asked: &Asked, bucket: &str) -> Option<String> {
    let path = decoded(asked.path.split('?').next().unwrap_or_default());
    let key = path.strip_prefix(bucket)?;
    Some(key.strip_prefix('/').unwrap_or(key).to_owned())
}

fn found(asked: &Asked, key: &str, objects: &BTreeMap<String, Vec<u8>>) -> Answer {
    match objects.get(key) {
        Some(body) => object(asked, body, &format!("\"{key}\"")),
        None => Answer::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
    }
}

/// Names of folders, and of objects with their size; then the token of the next page.
type Page = (Vec<(String, Option<usize>)>, Option<String>);

fn page(asked: &Asked, token: &str, objects: &BTreeMap<String, Vec<u8>>) -> Page {
    let (prefix, after) = (asked.query("prefix").unwrap_or_default(), asked.query(token).unwrap_or_default());
    let mut rows: Vec<(String, Option<usize>)> = Vec::new();
    for (key, body) in objects.range(prefix.clone()..) {
        let Some(rest) = key.strip_prefix(&prefix) else { break };
        let folder = rest.split_once('/').map(|(name, _)| format!("{prefix}{name}/"));
        let row = folder.map_or_else(|| (key.clone(), Some(body.len())), |folder| (folder, None));
        let last = rows.last().map(|(name, _)| name.clone());
        if row.0 <= after || Some(&row.0) == last.as_ref() {
            continue;
        }
        if rows.len() == 1_000 {
            return (rows, last);
        }
        rows.push(row);
    }
    (rows, None)
}
