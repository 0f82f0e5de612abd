//! The examples run on every recording at hand.

use std::path::Path;
use std::sync::Arc;

use stepscope_query::{Database, EXAMPLES, Limits, TABLES, VIEWS};
use stepscope_read::Progress;
use stepscope_session::{Profile, Query, ResolvedSession};
use stepscope_testkit::corpus::{corpus, files_below, repository};

fn run_all(path: &Path) -> bool {
    let wanted = Query { paths: vec![path.to_owned()], session: None, host: None, roots: Vec::new() };
    let Ok(chosen) = ResolvedSession::of(&wanted, &|_| {}) else { return false };
    let Ok(profile) = Profile::load(chosen, &Progress::new()) else { return false };
    let database = Database::new(Arc::new(profile), Limits { rows: 1_000, ..Limits::TERMINAL });
    for example in EXAMPLES {
        let answer = database.query(example.sql);
        assert!(answer.is_ok(), "{}: {}: {:?}", path.display(), example.question, answer.err());
    }
    let names = TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name));
    for name in names {
        let answer = database.query(&format!("SELECT * FROM {name} LIMIT 50"));
        assert!(answer.is_ok(), "{}: {name}: {:?}", path.display(), answer.err());
    }
    true
}

#[test]
fn examples_and_tables_work_on_the_fixtures() {
    assert_eq!(EXAMPLES.len(), 12);
    let mut read = 0;
    for entry in std::fs::read_dir(repository().join("fixtures")).unwrap().flatten() {
        read += usize::from(run_all(&entry.path()));
    }
    assert!(read > 3, "{read}");
}

#[test]
fn examples_and_tables_work_on_real_profiles() {
    let Some(folder) = corpus("") else { return };
    let read = files_below(&folder).iter().filter(|path| run_all(path)).count();
    assert!(read > 0);
}
