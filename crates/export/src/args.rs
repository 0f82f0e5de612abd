//! Arguments of an event as a JSON object.

use stepscope_trace::{Args, StrId, Trace, Value};

/// The arguments as a JSON object.
pub fn args_json(trace: &Trace, args: Args<'_>) -> String {
    let mut out = String::new();
    push_args(&mut out, trace, args);
    out
}

/// Appends the arguments as a JSON object. If two have the same name, the event's own wins.
pub(super) fn push_args(out: &mut String, trace: &Trace, args: Args<'_>) {
    let mut seen: Vec<StrId> = Vec::new();
    out.push('{');
    args.visit(|key, value| {
        if seen.contains(&key) {
            return;
        }
        if !seen.is_empty() {
            out.push(',');
        }
        seen.push(key);
        push_text(out, trace.str(key));
        out.push(':');
        push_value(out, &value);
    });
    out.push('}');
}

fn push_value(out: &mut String, value: &Value<'_>) {
    match value {
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::UInt(value) => out.push_str(&value.to_string()),
        Value::Float(value) if value.is_finite() => push_json(out, value),
        Value::Float(_) | Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Str(text) => push_text(out, text),
        // Bytes are nested messages, which no viewer can show.
        Value::Bytes(bytes) => push_text(out, &format!("{} bytes", bytes.len())),
        Value::Json(text) if is_json(text) => out.push_str(text),
        Value::Json(text) => push_text(out, text),
    }
}

/// Text as a JSON string.
pub(super) fn push_text(out: &mut String, text: &str) {
    push_json(out, text);
}

fn push_json<T: serde::Serialize + ?Sized>(out: &mut String, value: &T) {
    // Text and finite numbers always have a JSON form.
    out.push_str(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
}

/// Repaired files may contain text that only looks like JSON.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
