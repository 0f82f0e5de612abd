//! Words about a tf.data service: its workers, how many would keep up, and the slow stage of their own pipeline.

use stepscope_text::{duration_ms, plural, quoted, share};

use super::{Said, tf_data};
use crate::facts::ServiceFacts;

/// Workers that are named one by one.
const NAMED: usize = 4;

pub(super) fn said(service: &ServiceFacts) -> Said {
    let own = service.pipeline.as_deref();
    let slow = own.and_then(tf_data::named);
    let workers = plural(service.now, "worker", "workers");
    let mut evidence =
        vec![format!("Batches come from {workers} of the `tf.data` service; here they are only unpacked.")];
    for (address, part) in service.workers.iter().take(NAMED) {
        evidence.push(format!("{} of the waiting is for the worker at {}.", share(*part), quoted(address)));
    }
    if let (Some(pipeline), Some(name)) = (own, &slow) {
        let cost = pipeline.stage_ms.map_or(String::new(), |ms| format!(": {} per batch", duration_ms(ms)));
        evidence.push(format!("The slowest stage of the recorded worker is {name}{cost}."));
        if let Some(op) = &pipeline.heaviest {
            evidence.push(format!("Its function spends most of its time in {}.", quoted(op)));
        }
    }
    let mut advice = Vec::new();
    if let Some(pipeline) = own.filter(|_| slow.is_some()) {
        advice.push(format!("On the service's workers: {}", lower_first(&tf_data::main_advice(pipeline))));
    }
    advice.push(match service.needed {
        Some(needed) => format!(
            "Start more workers of the service: about {needed} would keep up if each delivers as fast as now ({} today).",
            service.now
        ),
        None => "Start more workers of the service.".to_owned(),
    });
    if own.is_none() {
        advice.push(
            "Record the workers too, with one `stepscope capture HOST:PORT HOST:PORT ...`, to see which stage is slow."
                .to_owned(),
        );
    }
    let why = slow.map_or_else(
        || "; the workers of the `tf.data` service cannot keep up".to_owned(),
        |name| format!("; the workers of the `tf.data` service cannot keep up, because {name} is slow there"),
    );
    Said { why, evidence, advice }
}

/// A sentence that continues another.
fn lower_first(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Pipeline;

    #[test]
    fn the_service_is_blamed_and_never_what_unpacks_its_batches() {
        let own = Pipeline {
            bottleneck_stage: Some("ParallelMapV2".into()),
            written_as: Some("MapDataset:3".into()),
            stage_ms: Some(173.0),
            heaviest: Some("TopKV2".into()),
            ..Pipeline::default()
        };
        let service = ServiceFacts {
            workers: vec![("10.0.0.7:5051".into(), 1.0)],
            needed: Some(16),
            now: 1,
            pipeline: Some(Box::new(own)),
            here: false,
        };
        let all = said(&service);
        let text = [std::slice::from_ref(&all.why), &all.evidence, &all.advice].concat().join(" ");
        assert!(text.contains("about 16 would keep up") && text.contains("10.0.0.7:5051"), "{text}");
        assert!(
            text.contains("`.map(...)`") && text.contains("TopKV2") && !text.contains("Uncompress"),
            "{text}"
        );
        let unseen = said(&ServiceFacts { pipeline: None, needed: None, ..service });
        assert!(
            unseen.advice.iter().any(|line| line.starts_with("Record the workers")),
            "{:?}",
            unseen.advice
        );
        assert!(unseen.evidence.iter().chain(&unseen.advice).all(|line| line.ends_with('.')));
    }
}
