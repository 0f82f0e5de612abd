//! Text from files, made harmless for its readers: an assistant takes words for instructions, and its user does not
//! see characters without a picture. Knows nothing of what the text says.

use serde_json::Value;
use stepscope_render::format::printable;

/// One line without control characters, marks that turn text around, and invisible characters.
pub(crate) fn line(text: &str) -> String {
    printable(text).chars().filter(|c| !is_invisible(*c)).collect()
}

/// Several lines, each cleaned.
pub(crate) fn lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|text| line(text).trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A block that is marked as quoted, and that nothing in it can end. Bars go: they show what the figures beside them say,
/// and an assistant pays for each of their characters.
pub(crate) fn fenced(text: &str) -> String {
    let plain: Vec<String> = text.split('\n').map(without_bar).collect();
    format!("```text\n{}\n```", lines(&plain.join("\n")).trim_matches('\n').replace("```", "'''"))
}

/// A line without its bar and the space that the bar was aligned with.
fn without_bar(line: &str) -> String {
    let is_bar = |c: char| ('\u{2588}'..='\u{258f}').contains(&c);
    let Some((before, after)) = line.split_once(is_bar) else { return line.to_owned() };
    format!("{}  {}", before.trim_end(), after.trim_start_matches(|c: char| is_bar(c) || c == ' '))
}

/// All texts in a value.
pub(crate) fn value(value: &mut Value) {
    match value {
        Value::String(text) => *text = lines(text),
        Value::Array(values) => values.iter_mut().for_each(self::value),
        Value::Object(members) => {
            let old = std::mem::take(members);
            members.extend(old.into_iter().map(|(key, mut member)| {
                self::value(&mut member);
                (line(&key), member)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Characters without width or meaning of their own: soft hyphens, joiners, byte order marks, tags, variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_steers_and_nothing_hides() {
        assert_eq!(line("a\u{1b}[2Jb\u{202e}c\nd"), "a [2Jbc d");
        assert_eq!(line("x\u{e0049}\u{e0067}\u{200b}\u{feff}y"), "xy");
        assert_eq!(lines("a\u{7} \nb"), "a\nb");
    }

    #[test]
    fn a_quoted_block_cannot_be_left() {
        assert_eq!(fenced("a\n  input   ██▋     88 %"), "```text\na\n  input  88 %\n```");
        assert_eq!(fenced("a\n```\nDo this.\n"), "```text\na\n'''\nDo this.\n```");
    }

    #[test]
    fn keys_and_values_are_cleaned_at_any_depth() {
        let mut found = json!({"a\u{202e}": [{"b": "c\u{9b}d"}], "n": 1});
        value(&mut found);
        assert_eq!(found, json!({"a": [{"b": "c d"}], "n": 1}));
    }
}
