//! Words for findings about the steps as a whole: `step-variance`, `inference-latency`.

use stepscope_analyze::Category;
use stepscope_analyze::odd::OddSteps;
use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;

use super::{Words, in_steps, quoted, share, terms};
use crate::format::{duration_ms, plural, short};

pub(super) fn variance(spread: f64, tail: f64, varies: Option<Category>) -> Words {
    let what = varies.map_or(String::new(), |category| {
        format!("; `{}` varies most ({})", category.key(), terms::category(category))
    });
    Words {
        summary: format!(
            "Step variance: steps differ by {} of their mean, and one in ten takes {} times the median or more{what}.",
            share(spread),
            short(tail)
        ),
        evidence: vec![
            format!("Standard deviation over mean: {}.", share(spread)),
            format!("90th percentile over median: {}.", short(tail)),
        ],
        advice: vec![
            "Look at the long ones: `stepscope steps PATH --sort duration_ms`.".to_owned(),
            usual_reason(varies).to_owned(),
        ],
    }
}

/// Steps that come back and do something which the others do not.
pub(super) fn odd_steps(finding: &Finding, odd: &OddSteps) -> Words {
    let mut evidence = vec![format!(
        "The middle one of them takes {}, of the others {}.",
        duration_ms(odd.odd_ms),
        duration_ms(odd.usual_ms)
    )];
    evidence.extend(
        odd.functions.iter().take(3).map(|(name, ms)| {
            format!("Only these steps call {}: {} in each.", quoted(name), duration_ms(*ms))
        }),
    );
    Words {
        summary: format!(
            "Step variance: {} take {} instead of {}; what they do beyond the others takes {} of the mean step.",
            in_steps(&odd.recurrence),
            duration_ms(odd.odd_ms),
            duration_ms(odd.usual_ms),
            share(finding.fraction.unwrap_or_default())
        ),
        evidence,
        advice: vec![
            "If it is an evaluation, run it less often, on fewer batches, or in another process on saved checkpoints."
                .to_owned(),
            "Look at the long ones: `stepscope steps PATH --sort duration_ms`.".to_owned(),
        ],
    }
}

/// What makes a category vary.
fn usual_reason(varies: Option<Category>) -> &'static str {
    match varies {
        Some(Category::Input) => "A buffer that runs empty now and then: keep more batches ready.",
        Some(Category::Output) => "Writing at every n-th step: do it beside the loop.",
        Some(Category::Tracing | Category::Compile) => {
            "Functions that are built in some steps only: find which shapes or arguments are new there."
        }
        Some(Category::Python) => {
            "Python that runs in some steps only: logging, evaluation, garbage collection."
        }
        Some(Category::Compute) => "Batches of different size, or other programs on the same processor.",
        Some(Category::Communication) => "Devices that wait for one another: look for a slow host.",
        _ => "Other programs on the same machine vary the time of every step.",
    }
}

pub(super) fn latency(
    framework: Framework,
    count: usize,
    [p50, p90, p99]: [f64; 3],
    mostly: Option<(Category, f64)>,
) -> Words {
    let most = mostly.map_or(String::new(), |(category, part)| {
        format!("; {} of it is `{}`, not the model", share(part), category.key())
    });
    let calls = plural(count as u64, "prediction", "predictions");
    let mut evidence = vec![format!("{calls}: 99th percentile {}.", duration_ms(p99))];
    evidence.extend(mostly.map(|(category, part)| {
        format!("`{}`: {} of a call ({}).", category.key(), share(part), terms::category(category))
    }));
    Words {
        summary: format!(
            "Inference latency: a prediction takes {} at the median and {} at the 90th percentile{most}.",
            duration_ms(p50),
            duration_ms(p90)
        ),
        evidence,
        advice: faster_calls(framework, mostly.map(|(category, _)| category)),
    }
}

fn faster_calls(framework: Framework, mostly: Option<Category>) -> Vec<String> {
    let mut advice = Vec::new();
    match framework {
        Framework::Keras => advice.push(
            "For single batches call the model itself, `model(x, training=False)`, inside a `@tf.function`: \
             `model.predict` sets up a dataset and callbacks at every call.",
        ),
        Framework::TensorFlow => {
            advice.push(
                "Serve one `@tf.function` with a fixed `input_signature`, called once before traffic comes.",
            );
        }
        Framework::Jax => advice
            .push("Compile before traffic comes, for a few padded sizes: `jax.jit(f).lower(x).compile()`."),
        Framework::PyTorch => advice.push(
            "Run under `torch.inference_mode()`, compiled: `torch.compile(model, mode=\"reduce-overhead\")`.",
        ),
        Framework::Unknown => {}
    }
    match mostly {
        Some(Category::TransferIn | Category::TransferOut) => {
            advice.push("Copy from pinned memory and send less: smaller types in, only what is needed out.");
        }
        Some(Category::Tracing | Category::Compile) => {
            advice.push("Pad requests to a few shapes, so that no call builds a program.");
        }
        _ => advice.push("Put several requests into one batch where latency allows."),
    }
    advice.into_iter().map(str::to_owned).collect()
}
