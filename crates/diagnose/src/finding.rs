//! What a rule reports: which finding, how much of the step it owns, what fixing it saves, and the measured facts
//! behind it, which put themselves into words.

mod sentences;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use stepscope_analyze::Category;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::vocabulary::Framework;
use stepscope_trace::Span;

use crate::owners::Unowned;
use crate::rule::Rule;

/// How much a finding matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Fix this first.
    Critical,
    /// Worth fixing.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The public name.
    pub fn key(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// A finding as people read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// One sentence with the numbers that matter: `Title: what happens.`
    pub summary: String,
    /// What was measured, one fact per line.
    pub evidence: Vec<String>,
    /// What to do, the best first; the last line says how to verify the fix.
    pub advice: Vec<String>,
}

/// The measured facts behind a finding. Each rule has its own type, which knows how to say them.
pub trait Cause: Any + fmt::Debug + Send + Sync {
    /// The facts in words. Advice speaks the language of the framework that wrote the trace, names the user's own thing
    /// and leaves out what is already in use. Names from a trace go through [`stepscope_text::quoted`].
    fn words(&self, finding: &Finding) -> Words;

    /// How to verify a fix that promises no milliseconds; `None` if there is nothing to verify.
    fn verify(&self) -> Option<&'static str> {
        Some("record again, then run `stepscope compare BEFORE AFTER`")
    }

    /// The name of what takes the time, where it is not the finding's subject: a stage of the pipeline, a line.
    fn culprit(&self) -> Option<String> {
        None
    }

    /// Does everything else wait for what it is about? Then it comes before other causes.
    fn leads(&self) -> bool {
        false
    }

    /// Is it about the machine rather than the program? Then it is never the verdict.
    fn is_noise(&self) -> bool {
        false
    }

    /// Does it say more about time that another finding explains? Then it comes behind all that do, and takes nothing from
    /// what only describes: it is the verdict only if nothing else is found.
    fn refines(&self) -> bool {
        false
    }

    /// Does it show that the rest of the recording says nothing about a loop's habits?
    fn hides_habits(&self) -> bool {
        false
    }
}

/// Where to look.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownStep {
    /// On which host.
    pub host: String,
    /// When.
    pub span: Span,
}

/// What a rule reports.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule that reports it.
    pub rule: &'static Rule,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: an op type, a function, an allocator.
    pub subject: Option<String>,
    /// The user's code that causes it, as `train.py:41 make_batch`, if Python was sampled or traced.
    pub line: Option<String>,
    /// What it owns of the mean step, in milliseconds by category. Rules compete for these.
    pub claims: Vec<(Category, f64)>,
    /// The share of what it owns that a fix saves at most; `None` if a profile cannot say.
    pub winnable: Option<f64>,
    /// How sure the rule is, 0 to 1.
    pub confidence: f64,
    /// The facts.
    pub cause: Arc<dyn Cause>,
    /// The framework that wrote the trace.
    pub framework: Framework,
    /// Where to look.
    pub place: Option<ShownStep>,
    /// In which steps it happens, unless in all; set by the rule or the engine.
    pub recurrence: Option<Recurrence>,
    /// Milliseconds of the mean step that it is about, including those that other findings own; set by the engine.
    pub about_ms: Option<f64>,
    /// What the step spends in the categories that it claims, in milliseconds, whichever finding owns it; set by the engine.
    pub whole_ms: Vec<(Category, f64)>,
    /// The share of the step that it is about; set by the engine.
    pub fraction: Option<f64>,
    /// The most that a fix saves, in milliseconds per step; set by the engine.
    pub gain_ms: Option<f64>,
    /// Large shares of the step that no finding owns; on the verdict, set by the engine.
    pub unowned: Vec<Unowned>,
    /// Findings of these rules explain the same better: where one of them is found, this one is not.
    pub yields_to: Vec<&'static Rule>,
    /// The program uses a device other than the host's processor; set by the engine.
    pub has_device: bool,
    /// There are no steps: all figures are of the whole capture; set by the engine.
    pub stepless: bool,
    /// Other findings say more about the same time; set by the engine.
    pub refined: bool,
}

impl Finding {
    /// A finding that owns nothing of the step.
    pub fn new(rule: &'static Rule, severity: Severity, cause: impl Cause, framework: Framework) -> Self {
        Finding {
            rule,
            severity,
            subject: None,
            line: None,
            claims: Vec::new(),
            whole_ms: Vec::new(),
            winnable: None,
            confidence: 1.0,
            cause: Arc::new(cause),
            framework,
            place: None,
            recurrence: None,
            about_ms: None,
            fraction: None,
            gain_ms: None,
            unowned: Vec::new(),
            yields_to: Vec::new(),
            has_device: true,
            stepless: false,
            refined: false,
        }
    }

    /// Sets what it is about, if that is known.
    pub fn about(mut self, subject: impl Into<Option<String>>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Sets the user's code that causes it, if that is known.
    pub(crate) fn at_line(mut self, line: Option<String>) -> Self {
        self.line = line;
        self
    }

    /// Claims time of the step, of which a fix saves a share at most.
    pub(crate) fn owning(mut self, claims: Vec<(Category, f64)>, winnable: Option<f64>) -> Self {
        self.claims = claims;
        self.winnable = winnable;
        self
    }

    /// Sets in which steps it happens.
    pub fn in_steps(mut self, recurrence: Recurrence) -> Self {
        self.recurrence = Some(recurrence);
        self
    }

    /// Leaves the word to another rule, where that finds something.
    pub(crate) fn yielding_to(mut self, rule: &'static Rule) -> Self {
        self.yields_to.push(rule);
        self
    }

    /// Sets how sure the rule is.
    pub fn sure(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }

    /// The public id of its rule.
    pub fn id(&self) -> &'static str {
        self.rule.id
    }

    /// Is this what that rule reports?
    pub fn is(&self, rule: &Rule) -> bool {
        self.rule.id == rule.id
    }

    /// Does it say that the recording cannot be trusted?
    pub fn is_about_trust(&self) -> bool {
        self.rule.is_about_trust()
    }

    /// Does it explain the recorded time? Doubts about the recording do so only if nothing else can: if set-up takes most
    /// of the time, the rest shows nothing about the loop.
    pub fn explains(&self) -> bool {
        (!self.is_about_trust() || self.cause.hides_habits()) && !self.cause.is_noise()
    }

    /// The facts, if they are of this type.
    pub fn cause<T: Cause>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.cause;
        any.downcast_ref()
    }

    /// The most by which the time of what it is about can fall, 0 to 1; `None` if a profile cannot say. The only promise
    /// for recordings without steps.
    pub fn gain_fraction(&self) -> Option<f64> {
        let of_step = self.gain_ms.zip(self.about_ms.filter(|about| *about > 0.0));
        of_step.map(|(gain, about)| gain / about).or(self.winnable).map(|share| share.clamp(0.0, 1.0))
    }

    /// Milliseconds of the step that it claims.
    pub(crate) fn claimed_ms(&self) -> f64 {
        self.claims.iter().map(|(_, ms)| ms).sum()
    }

    /// All words for it: those of its cause, how often it happens, where to look, and how to verify a fix.
    pub fn words(&self) -> Words {
        let mut words = self.cause.words(self);
        words.summary = self.of_its_time(words.summary);
        words.evidence.extend(sentences::how_often(self));
        words.evidence.extend(sentences::of_others(self));
        words.evidence.extend(sentences::by_category(self));
        words.evidence.extend(sentences::unowned(self));
        words.evidence.extend(sentences::place(self));
        words.advice.extend(sentences::verify(self));
        words.evidence = words.evidence.into_iter().map(|line| self.of_its_time(line)).collect();
        words.advice = words.advice.into_iter().map(|line| self.of_its_time(line)).collect();
        words
    }

    /// What its figures are counted by.
    pub fn per(&self) -> &'static str {
        if self.stepless { "in the capture" } else { "per step" }
    }

    /// A sentence that counts by what was recorded: rules write for steps.
    fn of_its_time(&self, sentence: String) -> String {
        if !self.stepless {
            return sentence;
        }
        sentence.replace(" per step", " in the capture").replace("Per step:", "In the capture:")
    }

    /// The sentence that says what is wrong.
    pub fn summary(&self) -> String {
        self.of_its_time(self.cause.words(self).summary)
    }

    /// Does part of what it is about belong to other findings?
    pub(crate) fn shares_with_others(&self) -> bool {
        self.refined || sentences::of_others(self).is_some()
    }

    /// What it is about, of the step: `34.9 ms of 39.8 ms (88 %)`; `fallback_ms` if it owns nothing.
    pub fn owned(&self, fallback_ms: f64) -> String {
        sentences::owned(self, fallback_ms)
    }
}
