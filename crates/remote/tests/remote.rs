//! The client against servers on this machine: what it asks for, what it refuses, and what it does with answers that are
//! wrong.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stepscope_remote::{Client, Error, Found, Kind, Rules};
use support::{Answer, Server, bucket, object};

fn client() -> Client {
    Client::new(Rules {
        descend: |name| name != "checkpoints",
        take: |name| name.ends_with(".pb"),
        head: |_| 16,
    })
}

fn of_s3(server: &Server) -> Client {
    client().with_settings(&[
        ("AWS_ENDPOINT_URL", &server.url),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ])
}

fn content(mut file: std::fs::File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn objects(names: &[&str]) -> BTreeMap<String, Vec<u8>> {
    names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec())).collect()
}

fn kind(result: Result<impl Sized, Error>) -> Kind {
    result.map(|_| ()).unwrap_err().kind
}

/// Bytes without a pattern that a mixed-up range could keep.
fn large(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// The most memory that the process ever had, in KiB.
fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0)
}

#[test]
fn folders_are_descended_by_the_rules_and_never_beside_them() {
    let names = [
        "logs/run1/checkpoints/1/data.pb",
        "logs/run1/plugins/profile/s1/h1.pb",
        "logs/run1/plugins/profile/s1/h2.pb",
        "logs/run1/plugins/profile/s1/notes.md",
        "logs/run2/h3.pb",
        "other/x.pb",
    ];
    let server = Server::start(bucket(objects(&names)));
    let client = of_s3(&server);
    client.search("s3://bucket/logs", true).unwrap();
    let asked = server.paths();
    assert!(!asked.iter().any(|path| path.contains("checkpoints") || path.contains("other")), "{asked:?}");
    assert!(
        asked.iter().all(|path| path.starts_with("GET") || path.starts_with("HEAD")),
        "only reads: {asked:?}"
    );
    let before = asked.len();
    let names = |url: &str| client.entries(url).unwrap();
    assert_eq!(names("s3://bucket/logs"), (vec!["run1".to_owned(), "run2".to_owned()], vec![]));
    assert_eq!(names("s3://bucket/logs/run1").0, ["plugins"]);
    assert_eq!(names("s3://bucket/logs/run1/plugins/profile/s1").1, ["h1.pb", "h2.pb"]);
    let Found::Object(found) = client.look("s3://bucket/logs/run2/h3.pb").unwrap() else {
        panic!("no object")
    };
    assert_eq!((found.bytes, found.etag.as_deref()), (15, Some("\"logs/run2/h3.pb\"")));
    assert!(found.modified > SystemTime::UNIX_EPOCH);
    assert_eq!(client.head("s3://bucket/logs/run2/h3.pb", 16).unwrap(), b"logs/run2/h3.pb");
    assert_eq!(server.paths().len(), before, "all of this was known");
    assert_eq!(content(client.fetch("s3://bucket/logs/run2/h3.pb").unwrap()), b"logs/run2/h3.pb");
    assert_eq!(client.moved().done, 15);
}

#[test]
fn folders_without_a_name_are_read_like_others() {
    let names = ["logs//run1/h1.pb", "logs//x.pb", "logs/h2.pb", "/leading.pb", "logs/../up.pb"];
    let server = Server::start(bucket(objects(&names)));
    let client = of_s3(&server);
    client.search("s3://bucket", true).unwrap();
    let at = |url: &str| client.entries(url).unwrap();
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(at("s3://bucket/logs"), (owned(&["∅", "∅.."]), owned(&["h2.pb"])));
    assert_eq!(at("s3://bucket/logs/∅"), (owned(&["run1"]), owned(&["x.pb"])));
    for same in ["s3://bucket/logs/∅/run1/h1.pb", "s3://bucket/logs//run1/h1.pb"] {
        assert_eq!(content(client.fetch(same).unwrap()), b"logs//run1/h1.pb");
    }
    // What no request can name is missing; nothing else is read in its place.
    assert_eq!(kind(client.fetch("s3://bucket/∅/leading.pb")), Kind::NotFound);
    assert_eq!(kind(client.fetch("s3://bucket/logs/∅../up.pb")), Kind::NotFound);
}

#[test]
fn what_is_missing_is_told_apart() {
    let server = Server::start(bucket(objects(&["logs/a.pb", "empty/"])));
    let client = of_s3(&server);
    assert_eq!(client.look("s3://bucket/logs/").unwrap(), Found::Folder);
    assert_eq!(client.look("s3://bucket").unwrap(), Found::Folder);
    assert_eq!(kind(client.look("s3://bucket/log")), Kind::NotFound);
    assert_eq!(kind(client.look("s3://elsewhere/logs")), Kind::NoBucket);
    assert_eq!(kind(client.fetch("s3://bucket/b.pb")), Kind::NotFound);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(matches!(kind(self::client().look(&format!("http://{closed}/x.pb"))), Kind::NoNetwork(_)));
    let denied = Server::start(|_| {
        Answer::new(403, "<Error><Code>InvalidAccessKeyId</Code><Message>unknown key</Message></Error>")
    });
    let Kind::Denied(said) = kind(of_s3(&denied).look("s3://bucket/logs")) else { panic!("not denied") };
    assert_eq!(said, "InvalidAccessKeyId: unknown key");
    assert_eq!(kind(self::client().look("http://127.0.0.1:9/folder/")), Kind::NoFolder);
}

#[test]
fn a_large_object_comes_in_ranges_of_one_version() {
    let body = large((20 << 20) + 123);
    let served = body.clone();
    let server = Server::start(move |asked| object(asked, &served, "\"v1\""));
    let url = format!("{}/trace.pb", server.url);
    let client = client();
    assert!(content(client.fetch(&url).unwrap()) == body);
    let asked = server.asked.lock().unwrap().clone();
    let ranges: Vec<_> = asked.iter().filter(|asked| asked.method == "GET").collect();
    assert_eq!(ranges.len(), 3);
    assert!(ranges.iter().skip(1).all(|asked| asked.header("if-match") == Some("\"v1\"")), "{ranges:?}");
    assert_eq!(client.head(&url, 100).unwrap(), &body[..100]);
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_an_error() {
    let body = large(20 << 20);
    for honest in [true, false] {
        let (served, gets) = (body.clone(), AtomicUsize::new(0));
        let server = Server::start(move |asked| {
            let first = asked.method == "HEAD" || gets.fetch_add(1, Ordering::Relaxed) == 0;
            let etag = if first { "\"v1\"" } else { "\"v2\"" };
            let mut asked = asked.clone();
            if !honest {
                // It ignores the demand and sends the new version.
                asked.headers.remove("if-match");
            }
            object(&asked, &served, etag)
        });
        assert_eq!(kind(client().fetch(&format!("{}/x.pb", server.url))), Kind::Changed, "honest: {honest}");
    }
}

#[test]
fn a_server_without_ranges_sends_the_whole_file() {
    let body = large(300_000);
    let served = body.clone();
    let server = Server::start(move |_| Answer::new(200, served.clone()));
    let url = format!("{}/x.pb", server.url);
    assert!(content(client().fetch(&url).unwrap()) == body);
    assert_eq!(client().head(&url, 10).unwrap(), &body[..10]);
    assert_eq!(client().look(&url).unwrap(), client().look(&url).unwrap());
}

#[test]
fn lists_that_are_damaged_or_endless_end_with_an_error_and_little_memory() {
    let answers: [fn() -> Answer; 4] = [
        || Answer::new(200, "<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>logs/a"),
        || Answer::new(200, "not a list at all"),
        || {
            let token = "<NextContinuationToken>again</NextContinuationToken>";
            let key = "<CommonPrefixes><Prefix>logs/a/</Prefix></CommonPrefixes>";
            Answer::new(200, format!("<ListBucketResult>{key}{token}</ListBucketResult>"))
        },
        || Answer { endless: true, ..Answer::new(200, " ".repeat(1 << 20)).claiming(1 << 40) },
    ];
    let before = peak_kib();
    for answer in answers {
        let server = Server::start(move |_| answer());
        assert!(matches!(kind(of_s3(&server).search("s3://bucket", false)), Kind::Answer(_)));
    }
    assert!(peak_kib() < before + (128 << 10), "{} KiB, before {before}", peak_kib());
}

#[test]
fn objects_of_another_length_than_announced_are_errors() {
    let more = Server::start(|asked| {
        let answer = object(asked, &large(1_000), "\"v\"");
        if asked.method == "GET" { Answer { body: large(2_000), ..answer } } else { answer }
    });
    let Kind::Answer(said) = kind(client().fetch(&format!("{}/x.pb", more.url))) else { panic!("no answer") };
    assert!(said.contains("more bytes"), "{said}");
    let fewer = Server::start(|asked| {
        let answer = object(asked, &large(1_000), "\"v\"");
        if asked.method == "GET" { Answer { body: large(10), claims: Some(1_000), ..answer } } else { answer }
    });
    assert!(matches!(kind(client().fetch(&format!("{}/x.pb", fewer.url))), Kind::Answer(_)));
    let huge = Server::start(|asked| {
        let Some((from, to)) = asked.range() else {
            return Answer::new(200, "").claiming(9_000_000_000_000_000_000);
        };
        let range = format!("bytes {from}-{}/9000000000000000000", to - 1);
        Answer::new(206, large(to - from)).with("Content-Range", range)
    });
    let before = peak_kib();
    let Kind::NoSpace(bytes, free, _) = kind(client().fetch(&format!("{}/x.pb", huge.url))) else {
        panic!("it fits")
    };
    assert!(bytes == 9_000_000_000_000_000_000 && free < bytes && peak_kib() < before + (64 << 10));
}

#[test]
fn redirects_are_followed_but_not_in_circles() {
    let circle = Server::start(|_| Answer::new(302, "").with("Location", "/x.pb"));
    assert!(matches!(kind(client().look(&format!("{}/x.pb", circle.url))), Kind::Answer(_)));
    let moved = Server::start(|asked| match asked.path.as_str() {
        "/x.pb" => Answer::new(302, "").with("Location", "/y.pb"),
        _ => object(asked, b"there", "\"v\""),
    });
    assert_eq!(content(client().fetch(&format!("{}/x.pb", moved.url)).unwrap()), b"there");
}

#[test]
fn a_folder_of_other_things_is_left_after_some_pages() {
    let names: BTreeMap<String, Vec<u8>> =
        (0..60_000).map(|i| (format!("logs/shard-{i:06}.npy"), Vec::new())).collect();
    let server = Server::start(bucket(names));
    of_s3(&server).search("s3://bucket/logs", false).unwrap();
    assert!(server.paths().len() < 30, "{}", server.paths().len());
}

#[test]
fn a_hundred_thousand_objects_are_listed_with_few_requests() {
    let mut names = BTreeMap::new();
    for (job, session, host) in (0..100_000).map(|i| (i / 1_000, i / 100 % 10, i % 100)) {
        names.insert(format!("logs/job{job:03}/plugins/profile/s{session}/host{host:03}.pb"), Vec::new());
    }
    let server = Server::start(bucket(names));
    let client = of_s3(&server);
    let begun = Instant::now();
    client.search("s3://bucket/logs", false).unwrap();
    let (took, asked) = (begun.elapsed(), server.paths().len());
    println!("100,000 objects: {asked} requests, {took:?}");
    // One per folder: jobs, plugins, profile, sessions; and two to look what `logs` is.
    assert!(asked <= 1 + 100 * 13 + 2, "{asked} requests");
    assert_eq!(client.entries("s3://bucket/logs/job042/plugins/profile/s7").unwrap().1.len(), 100);
    assert!(took < Duration::from_secs(120), "{took:?}");
}
