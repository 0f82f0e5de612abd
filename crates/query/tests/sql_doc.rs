//! docs/sql.md lists the tables and examples that there are. `STEPSCOPE_WRITE_DOCS=1` renews the generated part.

use std::fmt::Write as _;

use stepscope_query::{EXAMPLES, FUNCTIONS, TABLES, VIEWS};
use stepscope_testkit::corpus::repository;

const MARK: &str = "<!-- generated: `cargo xtask docs --write` -->\n";

fn generated() -> String {
    let mut text = String::from("\n## Tables\n");
    for table in TABLES.iter() {
        let _ =
            write!(text, "\n### {}\n\n{}\n\n| column | type | |\n|---|---|---|\n", table.name, table.about);
        for column in table.columns.iter() {
            let hidden = if column.hidden { "; not in `SELECT *`" } else { "" };
            let _ =
                writeln!(text, "| `{}` | {} | {}{hidden} |", column.name, column.holds.sql(), column.about);
        }
    }
    text.push_str("\n## Views\n\n| view | |\n|---|---|\n");
    for view in VIEWS {
        let _ = writeln!(text, "| `{}` | {} |", view.name, view.about);
    }
    text.push_str("\n## Functions\n\n| call | |\n|---|---|\n");
    for function in FUNCTIONS {
        let _ = writeln!(text, "| `{}` | {} |", function.call, function.about);
    }
    text.push_str("\n## Examples\n");
    for example in EXAMPLES {
        let _ = write!(text, "\n{}\n\n    {}\n", example.question, example.sql.replace('\n', "\n    "));
    }
    text
}

#[test]
fn the_documentation_lists_what_there_is() {
    let path = repository().join("docs/sql.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (kept, rest) = text.split_once(MARK).unwrap();
    if std::env::var_os("STEPSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{kept}{MARK}{}", generated())).unwrap();
    } else {
        assert_eq!(rest, generated(), "run `cargo xtask docs --write`");
    }
}
