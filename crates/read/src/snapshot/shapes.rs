//! What the dictionaries and lists of a snapshot are: frames, entries of the history, blocks, segments, stacks of calls.
//! Each is recognised by its keys when its items arrive, and kept as a few integers.

use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_trace::memory::{Role, StackId};

use super::known::{self, KNOWN};

/// A value on the machine's stack.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    /// 64 bits, as they are: addresses may look negative.
    Int(i64),
    Float(f64),
    /// The number of a text.
    Text(u32),
    Dict(u32),
    List(u32),
    Tuple {
        zeros: bool,
    },
}

/// What a dictionary is: the place of the thing in its list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Dict {
    Empty,
    Frame(u32),
    Entry(u32),
    Block(u32),
    Segment(u32),
    Other(u32),
}

/// What a list is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    Empty,
    /// Calls, innermost first.
    Stack(StackId),
    Items(u32),
}

/// A call: numbers of texts, and a line.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) file: Option<u32>,
    pub(super) function: Option<u32>,
    pub(super) line: u32,
}

/// An entry of the history.
#[derive(Copy, Clone, Debug)]
pub(super) struct Entry {
    pub(super) time_us: i64,
    /// An address; for a failed request the bytes that were free on the device.
    pub(super) address: u64,
    pub(super) size: u64,
    /// The number of a known word.
    pub(super) action: u32,
    pub(super) stack: StackId,
    pub(super) role: Option<Role>,
    pub(super) timed: bool,
}

/// A block of a segment.
#[derive(Copy, Clone, Debug)]
pub(super) struct RawBlock {
    pub(super) address: Option<u64>,
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) live: bool,
    pub(super) pending: bool,
    pub(super) stack: StackId,
    pub(super) role: Option<Role>,
}

/// A segment.
#[derive(Copy, Clone, Debug)]
pub(super) struct RawSegment {
    pub(super) device: i64,
    pub(super) address: Option<u64>,
    pub(super) size: u64,
    pub(super) private: bool,
    pub(super) expandable: bool,
    /// The list of its blocks.
    pub(super) blocks: Option<u32>,
}

/// The values of a dictionary with the keys of a snapshot.
#[derive(Copy, Clone, Default)]
struct Draft {
    action: Option<u32>,
    address: Option<u64>,
    device_free: Option<u64>,
    size: u64,
    time_us: Option<i64>,
    stack: StackId0,
    role: Option<Role>,
    file: Option<u32>,
    function: Option<u32>,
    line: Option<i64>,
    requested: Option<u64>,
    state: Option<u32>,
    blocks: Option<u32>,
    has_blocks: bool,
    total: u64,
    private: bool,
    device: i64,
    expandable: bool,
    real_size: Option<u64>,
    other: bool,
}

/// A stack that may be unknown, with a default.
#[derive(Copy, Clone)]
struct StackId0(StackId);

impl Default for StackId0 {
    fn default() -> Self {
        StackId0(StackId::UNKNOWN)
    }
}

/// Everything that was read.
pub(super) struct Shapes {
    pub(super) root: Option<Value>,
    pub(super) texts: Vec<Range<usize>>,
    numbers: FxHashMap<Vec<u8>, u32>,
    dicts: Vec<Dict>,
    lists: Vec<List>,
    pub(super) calls: Vec<Call>,
    known_calls: FxHashMap<Call, u32>,
    pub(super) stacks: stepscope_trace::memory::StackTableBuilder,
    pub(super) entries: Vec<Entry>,
    pub(super) blocks: Vec<RawBlock>,
    pub(super) segments: Vec<RawSegment>,
    others: Vec<Vec<(Value, Value)>>,
    items: Vec<Vec<Value>>,
    /// Frames of the list at hand.
    scratch: Vec<u32>,
    most: usize,
}

impl Shapes {
    pub(super) fn new(most: usize) -> Self {
        let numbers =
            KNOWN.iter().zip(0_u32..).map(|(text, number)| (text.as_bytes().to_vec(), number)).collect();
        Shapes {
            root: None,
            texts: vec![0..0; KNOWN.len()],
            numbers,
            dicts: Vec::new(),
            lists: Vec::new(),
            calls: Vec::new(),
            known_calls: FxHashMap::default(),
            stacks: stepscope_trace::memory::StackTableBuilder::new(),
            entries: Vec::new(),
            blocks: Vec::new(),
            segments: Vec::new(),
            others: Vec::new(),
            items: Vec::new(),
            scratch: Vec::new(),
            most,
        }
    }

    /// A new dictionary; `None` if there are too many.
    #[inline]
    pub(super) fn new_dict(&mut self) -> Option<Value> {
        let place = u32::try_from(self.dicts.len()).ok().filter(|_| self.dicts.len() < self.most)?;
        self.dicts.push(Dict::Empty);
        Some(Value::Dict(place))
    }

    /// A new list; `None` if there are too many.
    #[inline]
    pub(super) fn new_list(&mut self) -> Option<Value> {
        let place = u32::try_from(self.lists.len()).ok().filter(|_| self.lists.len() < self.most)?;
        self.lists.push(List::Empty);
        Some(Value::List(place))
    }

    /// The number of a text, new or known.
    pub(super) fn text(&mut self, text: &[u8], at: usize) -> Value {
        if let Some(&number) = self.numbers.get(text) {
            return Value::Text(number);
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(at..at + text.len());
        self.numbers.insert(text.to_vec(), number);
        Value::Text(number)
    }

    pub(super) fn dict(&self, place: u32) -> Dict {
        self.dicts.get(place as usize).copied().unwrap_or(Dict::Empty)
    }

    /// The items of a list of anything but calls.
    pub(super) fn items_of(&self, list: Value) -> &[Value] {
        let Value::List(place) = list else { return &[] };
        match self.lists.get(place as usize) {
            Some(&List::Items(place)) => self.items.get(place as usize).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// The value of a key in a dictionary that is none of the known shapes.
    pub(super) fn get(&self, dict: Value, key: u32) -> Option<Value> {
        let Value::Dict(place) = dict else { return None };
        let Dict::Other(place) = self.dict(place) else { return None };
        let pairs = self.others.get(place as usize)?;
        pairs.iter().find(|(name, _)| *name == Value::Text(key)).map(|(_, value)| *value)
    }

    fn stack_of(&self, value: Value) -> StackId {
        match value {
            Value::List(place) => match self.lists.get(place as usize) {
                Some(&List::Stack(stack)) => stack,
                _ => StackId::UNKNOWN,
            },
            _ => StackId::UNKNOWN,
        }
    }

    /// Items of a list.
    #[inline]
    pub(super) fn append(&mut self, list: u32, items: &[Value]) {
        let Some(&kind) = self.lists.get(list as usize) else { return };
        let kind = match kind {
            List::Items(place) => {
                if let Some(known) = self.items.get_mut(place as usize) {
                    known.extend_from_slice(items);
                }
                return;
            }
            List::Empty | List::Stack(_) if self.are_calls(items) => self.longer(kind, items),
            List::Empty | List::Stack(_) => {
                self.items.push(items.to_vec());
                List::Items(u32::try_from(self.items.len() - 1).unwrap_or(u32::MAX))
            }
        };
        if let Some(slot) = self.lists.get_mut(list as usize) {
            *slot = kind;
        }
    }

    fn are_calls(&self, items: &[Value]) -> bool {
        matches!(items.first(), Some(&Value::Dict(dict)) if matches!(self.dict(dict), Dict::Frame(_)))
    }

    /// A stack with more calls at its end.
    #[inline]
    fn longer(&mut self, before: List, items: &[Value]) -> List {
        self.scratch.clear();
        if let List::Stack(stack) = before {
            self.scratch.extend_from_slice(self.stacks.places_of(stack));
        }
        let dicts = &self.dicts;
        self.scratch.extend(items.iter().filter_map(|item| match item {
            Value::Dict(dict) => match dicts.get(*dict as usize) {
                Some(&Dict::Frame(frame)) => Some(frame),
                _ => None,
            },
            _ => None,
        }));
        List::Stack(self.stacks.stack(&self.scratch))
    }

    /// Items of a dictionary: keys and values in turn.
    pub(super) fn set_items(&mut self, dict: u32, items: &[Value]) {
        let draft = self.draft(items);
        let kind = match (self.dict(dict), draft) {
            (Dict::Empty, Some(draft)) => self.known_shape(&draft, items),
            _ => self.other(self.dict(dict), items),
        };
        if let Some(slot) = self.dicts.get_mut(dict as usize) {
            *slot = kind;
        }
    }

    fn other(&mut self, before: Dict, items: &[Value]) -> Dict {
        let pairs = items.chunks_exact(2).filter_map(|pair| match pair {
            [key, value] => Some((*key, *value)),
            _ => None,
        });
        if let Dict::Other(place) = before {
            if let Some(known) = self.others.get_mut(place as usize) {
                known.extend(pairs);
            }
            return before;
        }
        self.others.push(pairs.collect());
        Dict::Other(u32::try_from(self.others.len() - 1).unwrap_or(u32::MAX))
    }

    /// The values of known keys; `None` if a key is no text.
    fn draft(&self, items: &[Value]) -> Option<Draft> {
        let mut draft = Draft::default();
        for pair in items.chunks_exact(2) {
            let [Value::Text(key), value] = *pair else { return None };
            let whole = match value {
                Value::Int(number) => Some(number as u64),
                _ => None,
            };
            let text = match value {
                Value::Text(text) => Some(text),
                _ => None,
            };
            match key {
                known::ACTION => draft.action = text,
                known::ADDR | known::ADDRESS => draft.address = whole,
                known::DEVICE_FREE => draft.device_free = whole,
                known::SIZE => draft.size = whole.unwrap_or(0),
                known::TIME_US => draft.time_us = whole.map(|time| time as i64),
                known::FRAMES => draft.stack = StackId0(self.stack_of(value)),
                known::CATEGORY => draft.role = text.and_then(role_of),
                known::FILENAME => draft.file = text,
                known::NAME => draft.function = text,
                known::LINE => draft.line = whole.map(|line| line as i64),
                known::REQUESTED_SIZE => draft.requested = whole,
                known::STATE => draft.state = text,
                known::BLOCKS => {
                    draft.has_blocks = true;
                    draft.blocks = if let Value::List(list) = value { Some(list) } else { None };
                }
                known::TOTAL_SIZE => draft.total = whole.unwrap_or(0),
                known::SEGMENT_POOL_ID => draft.private = matches!(value, Value::Tuple { zeros: false }),
                known::DEVICE => draft.device = whole.map_or(0, |device| device as i64),
                known::IS_EXPANDABLE => draft.expandable = value == Value::Bool(true),
                known::HISTORY => self.take_history(value, &mut draft),
                known::STAGE | known::SEGMENTS | known::DEVICE_TRACES => draft.other = true,
                _ => {}
            }
        }
        Some(draft)
    }

    /// Older versions keep what a block was asked for in the first item of its history.
    fn take_history(&self, value: Value, draft: &mut Draft) {
        let Some(&first) = self.items_of(value).first() else { return };
        if let Some(Value::Int(size)) = self.get(first, known::REAL_SIZE) {
            draft.real_size = Some(size as u64);
        }
        if let Some(frames) = self.get(first, known::FRAMES) {
            draft.stack = StackId0(self.stack_of(frames));
        }
    }

    fn known_shape(&mut self, draft: &Draft, items: &[Value]) -> Dict {
        let place = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        if draft.other {
            self.other(Dict::Empty, items)
        } else if let Some(action) = draft.action {
            self.entries.push(Entry {
                time_us: draft.time_us.unwrap_or(0),
                address: draft.address.or(draft.device_free).unwrap_or(0),
                size: draft.size,
                action,
                stack: draft.stack.0,
                role: draft.role,
                timed: draft.time_us.is_some(),
            });
            Dict::Entry(place(self.entries.len() - 1))
        } else if draft.has_blocks {
            self.segments.push(RawSegment {
                device: draft.device,
                address: draft.address,
                size: draft.total,
                private: draft.private,
                expandable: draft.expandable,
                blocks: draft.blocks,
            });
            Dict::Segment(place(self.segments.len() - 1))
        } else if let Some(state) = draft.state {
            let pending = matches!(state, known::ACTIVE_PENDING_FREE | known::ACTIVE_AWAITING_FREE);
            self.blocks.push(RawBlock {
                address: draft.address,
                size: draft.size,
                requested: draft.requested.or(draft.real_size).unwrap_or(draft.size),
                live: pending || state == known::ACTIVE_ALLOCATED,
                pending,
                stack: draft.stack.0,
                role: draft.role,
            });
            Dict::Block(place(self.blocks.len() - 1))
        } else if draft.function.is_some() || draft.file.is_some() {
            let call = Call {
                file: draft.file,
                function: draft.function,
                line: draft.line.map_or(0, |line| u32::try_from(line).unwrap_or(0)),
            };
            Dict::Frame(self.call(call))
        } else {
            self.other(Dict::Empty, items)
        }
    }

    fn call(&mut self, call: Call) -> u32 {
        *self.known_calls.entry(call).or_insert_with(|| {
            self.calls.push(call);
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// The role that PyTorch's memory profiler gives a tensor.
fn role_of(category: u32) -> Option<Role> {
    Some(match category {
        known::PARAMETER => Role::Parameter,
        known::OPTIMIZER_STATE => Role::Optimizer,
        known::INPUT => Role::Input,
        known::TEMPORARY => Role::Temporary,
        known::ACTIVATION => Role::Activation,
        known::GRADIENT => Role::Gradient,
        known::AUTOGRAD_DETAIL => Role::Autograd,
        _ => return None,
    })
}
