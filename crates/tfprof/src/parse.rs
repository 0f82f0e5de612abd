//! Options from text: single values, and the line form of tfprof's prompt (`scope -max_depth 3 -select micros`).

use crate::options::{Column, OptionError, Options, OrderBy, Output};
use crate::patterns::Patterns;

/// The options' names, in tfprof's order.
pub const OPTION_NAMES: [&str; 21] = [
    "max_depth",
    "min_bytes",
    "min_peak_bytes",
    "min_residual_bytes",
    "min_output_bytes",
    "min_micros",
    "min_accelerator_micros",
    "min_cpu_micros",
    "min_params",
    "min_float_ops",
    "min_occurrence",
    "step",
    "order_by",
    "account_type_regexes",
    "start_name_regexes",
    "trim_name_regexes",
    "show_name_regexes",
    "hide_name_regexes",
    "account_displayed_op_only",
    "select",
    "output",
];

/// A line of the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its first word.
    pub command: String,
    /// The options after it, on top of those set before.
    pub options: Options,
}

/// Parses a line; its options start from `options`. A line without a word has no command.
pub fn parse_line(line: &str, options: &Options) -> Result<Line, OptionError> {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let command = words.next().unwrap_or_default().to_owned();
    let words: Vec<&str> = words.collect();
    let mut options = options.clone();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let value = words.get(at + 1).copied();
        let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or_default();
        if name == "account_displayed_op_only" && value.is_none_or(|value| value.starts_with('-')) {
            options.account_displayed_op_only = true;
            at += 1;
            continue;
        }
        let wrong = |expected: &str| OptionError {
            option: (*word).to_owned(),
            value: value.unwrap_or_default().to_owned(),
            expected: expected.to_owned(),
        };
        if !OPTION_NAMES.contains(&name) {
            return Err(wrong("the options are those that an empty line lists"));
        }
        let value = value.ok_or_else(|| wrong("a value is missing"))?;
        options.set(name, &[value.to_owned()])?;
        at += 2;
    }
    Ok(Line { command, options })
}

/// Splits a list at its commas, except those inside brackets or after a backslash; removes quotes around it.
pub(crate) fn split_list(text: &str) -> Vec<String> {
    let text = text.trim_matches(['"', '\'']);
    let (mut parts, mut part, mut depth, mut escaped) = (Vec::new(), String::new(), 0u32, false);
    for c in text.chars() {
        match c {
            ',' if depth == 0 && !escaped => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
        match c {
            '[' | '{' | '(' if !escaped => depth += 1,
            ']' | '}' | ')' if !escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

impl Options {
    /// Sets one option, by its name without dashes. Lists take several values, or one with commas.
    pub fn set(&mut self, name: &str, values: &[String]) -> Result<(), OptionError> {
        let value = values.last().map(String::as_str).unwrap_or_default();
        let wrong =
            |expected: String| OptionError { option: format!("-{name}"), value: values.join(","), expected };
        let number = || value.parse::<i64>().map_err(|_| wrong("a whole number is expected".to_owned()));
        let patterns = || {
            let parts = values.iter().flat_map(|value| split_list(value)).collect();
            Patterns::new(parts)
                .map_err(|(text, why)| wrong(format!("`{text}` is no regular expression: {why}")))
        };
        match name {
            "max_depth" => self.max_depth = number()?,
            "min_bytes" => self.min_bytes = number()?,
            "min_peak_bytes" => self.min_peak_bytes = number()?,
            "min_residual_bytes" => self.min_residual_bytes = number()?,
            "min_output_bytes" => self.min_output_bytes = number()?,
            "min_micros" => self.min_micros = number()?,
            "min_accelerator_micros" => self.min_accelerator_micros = number()?,
            "min_cpu_micros" => self.min_cpu_micros = number()?,
            "min_params" => self.min_params = number()?,
            "min_float_ops" => self.min_float_ops = number()?,
            "min_occurrence" => self.min_occurrence = number()?,
            "step" => self.step = number()?,
            "order_by" => {
                let known = || one_of(OrderBy::ALL.iter().map(|it| it.name()));
                self.order_by = OrderBy::named(value).ok_or_else(|| wrong(known()))?;
            }
            "account_type_regexes" => self.account_type_regexes = patterns()?,
            "start_name_regexes" => self.start_name_regexes = patterns()?,
            "trim_name_regexes" => self.trim_name_regexes = patterns()?,
            "show_name_regexes" => self.show_name_regexes = patterns()?,
            "hide_name_regexes" => self.hide_name_regexes = patterns()?,
            "account_displayed_op_only" => {
                self.account_displayed_op_only =
                    truth(value).ok_or_else(|| wrong("true or false is expected".to_owned()))?;
            }
            "select" => {
                let known = || one_of(Column::ALL.iter().map(|it| it.name()));
                let column = |part: String| Column::named(&part).ok_or_else(|| wrong(known()));
                let parts = values.iter().flat_map(|value| split_list(value));
                self.select = parts.map(column).collect::<Result<_, _>>()?;
            }
            "output" => self.output = output(value).map_err(wrong)?,
            _ => return Err(wrong(one_of(OPTION_NAMES.into_iter()))),
        }
        Ok(())
    }
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("one of {} is expected", names.collect::<Vec<_>>().join(", "))
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" => Some(true),
        "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// `stdout`, `none`, or `file:outfile=F`, `timeline:outfile=F`, `pprof:outfile=F`.
fn output(text: &str) -> Result<Output, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    let outfile = || {
        let path = rest.strip_prefix("outfile=").filter(|path| !path.is_empty());
        path.map(str::to_owned).ok_or_else(|| format!("{kind}:outfile=FILE is expected"))
    };
    match kind {
        "" | "stdout" if rest.is_empty() => Ok(Output::Stdout),
        "none" if rest.is_empty() => Ok(Output::None),
        "file" => outfile().map(Output::File),
        "timeline" => outfile().map(Output::Timeline),
        "pprof" => outfile().map(Output::Pprof),
        _ => Err(
            "one of stdout, file:outfile=FILE, timeline:outfile=FILE, pprof:outfile=FILE, none is expected"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sets_options_on_top_of_those_before() {
        let base = Options { min_micros: 7, ..Options::default() };
        let line =
            parse_line("scope  -max_depth 3 -select micros,bytes -account_displayed_op_only", &base).unwrap();
        assert_eq!(line.command, "scope");
        assert_eq!((line.options.max_depth, line.options.min_micros), (3, 7));
        assert!(line.options.account_displayed_op_only);
        assert_eq!(line.options.select.len(), 2);
        let off = parse_line("op -account_displayed_op_only No -step 2", &line.options).unwrap().options;
        assert!(!off.account_displayed_op_only);
        assert_eq!(off.step, 2);
    }

    #[test]
    fn wrong_lines_say_which_option() {
        let wrong = |line: &str| parse_line(line, &Options::default()).unwrap_err().to_string();
        assert!(wrong("scope -max_depth x").starts_with("Invalid option '-max_depth' value: 'x'"));
        assert!(wrong("scope -depth 3").starts_with("Invalid option '-depth' value: '3'"));
        assert!(wrong("scope -select time").contains("micros"));
        assert!(wrong("scope -output timeline").contains("timeline:outfile=FILE"));
        assert!(wrong("scope -show_name_regexes (").contains("regular expression"));
        assert!(wrong("scope -step").contains("missing"));
    }

    #[test]
    fn lists_are_split_at_commas_outside_of_brackets() {
        assert_eq!(split_list("a,b,,c"), ["a", "b", "c"]);
        assert_eq!(split_list("'x{1,2},[,]y'"), ["x{1,2}", "[,]y"]);
        assert_eq!(split_list(r"a\,b,\(,c"), [r"a\,b", r"\(", "c"]);
        assert!(split_list("").is_empty() && split_list("''").is_empty());
    }
}
