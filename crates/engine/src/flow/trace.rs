//! Traces, as the W3C's trace context has them: a run belongs to what asked for it, a step to
//! its run, and what a step sends or starts to the step.
//!
//! The ids of spans follow from the ids of runs and steps. So a run that a crash cut in two is
//! one trace, and whoever looks at the log knows them without having been told.

use std::fmt;

use cairn_core::digest::Digest;
use cairn_core::event::engine::Payload;
use cairn_core::id::RunId;
use cairn_core::instance::StepInstanceKey;

/// The header of a request in which a trace is told.
pub const HEADER: &str = "traceparent";
/// The variable in which a command is told its trace.
pub const VARIABLE: &str = "TRACEPARENT";
/// The member of an event that says what it belongs to.
pub const MEMBER: &str = "trace";

/// The id of a trace.
pub type TraceId = [u8; 16];
/// The id of a span in a trace.
pub type SpanId = [u8; 8];

/// A span that others belong to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent {
    /// Its trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Whether whoever began the trace keeps it.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads one.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may say more behind, and the first one does not.
        let good = version != "ff" && (version != "00" || parts.next().is_none());
        let [_]: [u8; 1] = unhex(version)?;
        let (trace, span, [flags]) = (unhex(trace)?, unhex(span)?, unhex::<1>(flags)?);
        let found = Self { trace, span, sampled: flags & 1 == 1 };
        (good && trace != [0; 16] && span != [0; 8]).then_some(found)
    }

    /// What asked for a run, as its input says it where it is not kept beside the log.
    #[must_use]
    pub fn of_input(input: &Payload) -> Option<Self> {
        let Payload::Inline(input) = input else { return None };
        Self::read(input.0.get("event")?.get(MEMBER)?.as_str()?)
    }

    /// A run that something asked for.
    #[must_use]
    pub fn of_run(run: RunId, above: Option<Self>) -> Self {
        let trace = above.map_or_else(|| leading(&format!("trace {run}")), |above| above.trace);
        let sampled = above.is_none_or(|above| above.sampled);
        Self { trace, span: leading(&format!("run {run}")), sampled }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace), u64::from_be_bytes(self.span));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.sampled))
    }
}

/// A try at a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Try {
    /// The run.
    pub run: RunId,
    /// What asked for the run.
    pub above: Option<TraceParent>,
    /// The step.
    pub instance: StepInstanceKey,
    /// Which try it is; counts from 0.
    pub attempt: u32,
}

impl Try {
    /// What belongs to it carries this.
    #[must_use]
    pub fn parent(&self) -> TraceParent {
        let span = step_span(self.run, &self.instance, self.attempt);
        TraceParent { span, ..TraceParent::of_run(self.run, self.above) }
    }
}

/// The span of a try at a step.
#[must_use]
pub fn step_span(run: RunId, instance: &StepInstanceKey, attempt: u32) -> SpanId {
    leading(&format!("step {run} {instance} {attempt}"))
}

/// The first bytes of a digest.
fn leading<const N: usize>(text: &str) -> [u8; N] {
    let digest = Digest::of(text.as_bytes());
    let mut bytes = [0; N];
    bytes.iter_mut().zip(digest.as_bytes()).for_each(|(byte, from)| *byte = *from);
    bytes
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(lower) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_traceparent_of_the_right_form_is_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = TraceParent::read(good).unwrap();
        assert_eq!((read.trace[0], read.span[7], read.to_string()), (0x0a, 0x31, good.to_owned()));
        let later = good.replacen("00", "01", 1).replace("-01", "-01-more");
        assert_eq!(TraceParent::read(&later), Some(read));
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::read(bad), None, "{bad}");
        }
    }
}
