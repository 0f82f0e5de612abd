//! Shapes as profiles write them: `[[16, 3, 32, 32], [16], []]` (Kineto), `[{"float":[4,3,224,224]}]` (ONNX Runtime),
//! `(128,784),(784,10)` (TensorFlow).

/// The dimensions of one input; empty for a number, or for what is no tensor.
pub type Shape = Vec<u64>;

/// Inputs that are looked at; formulas need at most the first four.
const MOST_INPUTS: usize = 16;
/// Dimensions of one input.
const MOST_DIMENSIONS: usize = 16;

/// The shapes in a text, one per input. A list of tensors counts as one input without dimensions.
pub fn parse(text: &str) -> Vec<Shape> {
    let bytes = text.as_bytes();
    let opens_list = text.trim_start().starts_with('[');
    let (mut found, mut depth, mut at) = (Vec::new(), 0_usize, 0);
    // Kineto and ONNX Runtime write one list around all inputs; TensorFlow does not.
    let input_depth = if opens_list { 2 } else { 1 };
    let (mut nested, mut current): (bool, Shape) = (false, Vec::new());
    while let Some(&byte) = bytes.get(at).filter(|_| found.len() < MOST_INPUTS) {
        match byte {
            b'[' | b'(' => {
                depth += 1;
                if depth == input_depth {
                    (nested, current) = (false, Vec::new());
                }
                nested |= depth > input_depth;
            }
            b']' | b')' => {
                if depth == input_depth {
                    found.push(if nested { Vec::new() } else { std::mem::take(&mut current) });
                }
                depth = depth.saturating_sub(1);
            }
            b'"' => {
                at += bytes.get(at + 1..).and_then(|rest| rest.iter().position(|&b| b == b'"')).unwrap_or(0)
                    + 1;
            }
            b'0'..=b'9' => {
                let digits =
                    bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
                let number: Option<u64> = text.get(at..at + digits).and_then(|digits| digits.parse().ok());
                if depth == input_depth && current.len() < MOST_DIMENSIONS {
                    current.extend(number);
                }
                at += digits.max(1);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_every_writer_are_understood() {
        let kineto = parse("[[16, 3, 32, 32], [8, 3, 3, 3], [8], [], [[2, 2], [2, 2]], []]");
        assert_eq!(kineto, [vec![16, 3, 32, 32], vec![8, 3, 3, 3], vec![8], vec![], vec![], vec![]]);
        let onnx = parse(r#"[{"float":[4,3,224,224]},{"float16":[16,3,3,3]},{"int64":[]}]"#);
        assert_eq!(onnx, [vec![4, 3, 224, 224], vec![16, 3, 3, 3], vec![]]);
        assert_eq!(parse("(128,784),(784,10)"), [[128, 784], [784, 10]]);
    }

    #[test]
    fn texts_that_are_no_shapes_end_quietly() {
        for text in ["", "[", "[[", "[[1", "]]]", "[[99999999999999999999]]", "\"", "[\"a", "()", "[[-1, 2]]"]
        {
            parse(text);
        }
        assert_eq!(parse(&format!("[{}]", "[1],".repeat(1_000))).len(), 16);
    }
}
