//! Parses rates, SLOs, and a command line inside one argument.

use std::ffi::OsString;

use stepscope_capture::bench::infer::sweep::Promise;

use crate::quantity::some_time;

/// `100`, `0.5`, `100/s`, `30/m`.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.split_once('/') {
        None | Some((_, "s")) => (text.split('/').next().unwrap_or(text), 1.0),
        Some((number, "m" | "min")) => (number, 1.0 / 60.0),
        _ => return Err("give requests per second, e.g. 100 or 100/s".to_owned()),
    };
    let rate = number.trim().parse::<f64>().map_err(|_| "not a number".to_owned())? * scale;
    if rate > 0.0 && rate <= 1e6 {
        Ok(rate)
    } else {
        Err("must be above 0 and at most 1,000,000 per second".to_owned())
    }
}

/// `p99=50ms`, `max=1s`.
pub(super) fn promise(text: &str) -> Result<Promise, String> {
    let wrong = || "give a percentile and a time: p99=50ms, max=1s".to_owned();
    let (which, limit) = text.split_once('=').ok_or_else(wrong)?;
    let percentile = match which.trim() {
        "max" => 1.0,
        "median" => 0.5,
        other => {
            let percent = other.strip_prefix('p').ok_or_else(wrong)?;
            percent.parse::<f64>().ok().filter(|it| *it > 0.0 && *it < 100.0).ok_or_else(wrong)? / 100.0
        }
    };
    Ok(Promise { percentile, limit: some_time(limit.trim())? })
}

/// `Name: value`.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("give Name: value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Splits a command line into words as a shell does: spaces separate, quotes and backslashes protect.
pub(crate) fn words(text: &str) -> Result<Vec<OsString>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a quote is not closed")? {
                        c if c == quote => break,
                        '\\' if quote == '"' => word.push(chars.next().ok_or("nothing after a \\")?),
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or("nothing after a \\")?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        Err("no command".to_owned())
    } else {
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rates_and_promises_are_read_or_refused() {
        assert_eq!((rate("100"), rate("0.5/s"), rate("60/m")), (Ok(100.0), Ok(0.5), Ok(1.0)));
        assert!(["0", "-3", "nan", "inf", "5/h", ""].iter().all(|text| rate(text).is_err()));
        let limit = Duration::from_millis(50);
        assert_eq!(promise("p99=50ms"), Ok(Promise { percentile: 0.99, limit }));
        assert_eq!(promise("max=50ms"), Ok(Promise { percentile: 1.0, limit }));
        assert!(["p99", "p0=1s", "p100=1s", "99=1s", "p99=0s"].iter().all(|text| promise(text).is_err()));
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        let split = |text: &str| words(text).unwrap();
        assert_eq!(
            split(r#" python  a.py --x 'a b' "c \" d" e\ f '' "#),
            ["python", "a.py", "--x", "a b", "c \" d", "e f", ""]
        );
        assert!(words("  ").is_err() && words("'a").is_err() && words("a\\").is_err());
    }
}
