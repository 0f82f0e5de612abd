//! The neighbourhood of an instruction: what it takes, and who takes it, up to a distance.
//!
//! ```text
//! layout  where boxes and lines of a neighbourhood go
//! ```

mod layout;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::cost::Users;
use crate::module::{Instruction, InstructionId, Module};

pub use layout::{Drawing, PlacedEdge, PlacedNode};

/// Users of a value that are followed at most: a constant may have thousands.
const MOST_USERS: usize = 16;
/// Instructions of one neighbourhood; more cannot be read.
const MOST_NODES: usize = 300;

/// Instructions around one, in the order of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The instructions, with their distances.
    pub nodes: Vec<(InstructionId, usize)>,
    /// From what is taken to who takes it, by places in `nodes`.
    pub edges: Vec<(usize, usize)>,
    /// Places of nodes with more neighbours than are shown.
    pub cut: Vec<usize>,
}

impl<'a> Module<'a> {
    /// The instructions within `radius` of one. Relabellings cost no distance; constants, what a tuple joins, and the users of
    /// values that many use are not followed.
    pub fn neighbourhood(&self, centre: InstructionId, radius: usize) -> Neighbourhood {
        let users = Users::of(self);
        let mut distances: FxHashMap<InstructionId, usize> = FxHashMap::default();
        let mut cut: Vec<InstructionId> = Vec::new();
        distances.insert(centre, 0);
        let mut next = VecDeque::from([centre]);
        while let Some(id) = next.pop_front() {
            let Some(instruction) = self.instruction(id) else { continue };
            let distance =
                distances.get(&id).copied().unwrap_or(0) + usize::from(costs_distance(instruction));
            let using = users.get(id);
            let many = using.len() > MOST_USERS || instruction.opcode == "constant";
            if many && id != centre {
                cut.push(id);
            }
            let using = if many {
                &using[..using.len().min(if id == centre { MOST_USERS } else { 0 })]
            } else {
                using
            };
            // A tuple joins values that have nothing to do with one another.
            let joins = instruction.opcode == "tuple" && id != centre;
            let operands = if joins { &[][..] } else { &instruction.operands[..] };
            if joins {
                cut.push(id);
            }
            for &neighbour in operands.iter().chain(using) {
                if distances.contains_key(&neighbour) {
                    continue;
                }
                if distance > radius || distances.len() >= MOST_NODES {
                    cut.push(id);
                    continue;
                }
                distances.insert(neighbour, distance);
                next.push_back(neighbour);
            }
        }
        self.connected(distances, &cut)
    }

    fn connected(&self, distances: FxHashMap<InstructionId, usize>, cut: &[InstructionId]) -> Neighbourhood {
        let mut nodes: Vec<(InstructionId, usize)> = distances.into_iter().collect();
        nodes.sort_unstable();
        let place: FxHashMap<InstructionId, usize> =
            nodes.iter().enumerate().map(|(place, (id, _))| (*id, place)).collect();
        let mut edges = Vec::new();
        for (to, (id, _)) in nodes.iter().enumerate() {
            let operands = self.instruction(*id).map_or(&[][..], |instruction| &instruction.operands);
            edges.extend(operands.iter().filter_map(|operand| Some((*place.get(operand)?, to))));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut cut: Vec<usize> = cut.iter().filter_map(|id| place.get(id).copied()).collect();
        cut.sort_unstable();
        cut.dedup();
        Neighbourhood { nodes, edges, cut }
    }
}

fn costs_distance(instruction: &Instruction<'_>) -> bool {
    !matches!(instruction.opcode, "bitcast" | "get-tuple-element")
}
