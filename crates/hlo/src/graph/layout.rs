//! Where the boxes and lines of a neighbourhood go: layers from operands to users, ordered so that few lines cross.
//!
//! Ranks by the longest path; a line over several layers passes through a place of its own in each; the order within a layer
//! follows the mean place of neighbours, downwards and upwards in turn. All numbers are pixels.

use super::Neighbourhood;

/// Height of a box.
const HEIGHT: f64 = 40.0;
/// Space between two layers.
const LAYER_GAP: f64 = 46.0;
/// Space between two boxes of a layer.
const BOX_GAP: f64 = 18.0;
/// Width that a line needs where it passes a layer.
const PASSING: f64 = 10.0;
/// Passes over all layers; more change nothing that people see.
const SWEEPS: usize = 12;
/// Places in all layers: lines that are longer than this allows go straight.
const MOST_PLACES: usize = 4_000;

/// A box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlacedNode {
    /// Its left edge.
    pub x: f64,
    /// Its upper edge.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// A line through these points, from above.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedEdge {
    /// Where it starts, as a place in the neighbourhood.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// A neighbourhood on a plane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// One box per node, in the order of the neighbourhood.
    pub nodes: Vec<PlacedNode>,
    /// The lines.
    pub edges: Vec<PlacedEdge>,
    /// Width of everything.
    pub width: f64,
    /// Height of everything.
    pub height: f64,
}

/// A place in a layer: a box, or where a line passes.
struct Place {
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
    x: f64,
}

impl Neighbourhood {
    /// Lays it out; `width` says how wide the box of a node is.
    pub fn draw(&self, width: impl Fn(usize) -> f64) -> Drawing {
        let ranks = self.ranks();
        let mut places: Vec<Place> = (0..self.nodes.len()).map(|node| Place::of(width(node))).collect();
        let mut layers: Vec<Vec<usize>> = vec![Vec::new(); ranks.iter().max().map_or(0, |most| most + 1)];
        ranks.iter().enumerate().for_each(|(node, &rank)| layers[rank].push(node));
        let mut chains: Vec<Vec<usize>> = Vec::with_capacity(self.edges.len());
        for &(from, to) in &self.edges {
            let mut chain = vec![from];
            for layer in layers.iter_mut().take(ranks[to]).skip(ranks[from] + 1) {
                if places.len() >= MOST_PLACES {
                    break;
                }
                layer.push(places.len());
                chain.push(places.len());
                places.push(Place::of(PASSING));
            }
            chain.push(to);
            for pair in chain.windows(2) {
                if let [upper, lower] = *pair {
                    places[upper].below.push(lower);
                    places[lower].above.push(upper);
                }
            }
            chains.push(chain);
        }
        arrange(&mut places, &mut layers);
        self.drawing(&ranks, &places, &chains)
    }

    /// The longest path to each node. Operands come before users, so that one pass is enough.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![0; self.nodes.len()];
        let mut by_end = self.edges.clone();
        by_end.sort_unstable_by_key(|&(from, to)| (to, from));
        for (from, to) in by_end {
            if from < to {
                ranks[to] = ranks[to].max(ranks[from] + 1);
            }
        }
        ranks
    }

    fn drawing(&self, ranks: &[usize], places: &[Place], chains: &[Vec<usize>]) -> Drawing {
        let left = places.iter().map(|place| place.x).fold(f64::INFINITY, f64::min);
        let top = |rank: usize| rank as f64 * (HEIGHT + LAYER_GAP);
        let node = |index: usize| PlacedNode {
            x: places[index].x - left,
            y: top(ranks[index]),
            width: places[index].width,
            height: HEIGHT,
        };
        let nodes: Vec<PlacedNode> = (0..self.nodes.len()).map(node).collect();
        let middle = |place: usize| places[place].x - left + places[place].width / 2.0;
        let edge = |(&(from, to), chain): (&(usize, usize), &Vec<usize>)| {
            let mut points = vec![(middle(from), top(ranks[from]) + HEIGHT)];
            let inner = chain.iter().enumerate().skip(1).take(chain.len().saturating_sub(2));
            points
                .extend(inner.map(|(step, &place)| (middle(place), top(ranks[from] + step) + HEIGHT / 2.0)));
            points.push((middle(to), top(ranks[to])));
            PlacedEdge { from, to, points }
        };
        let right = nodes.iter().map(|node| node.x + node.width).fold(0.0, f64::max);
        let bottom = nodes.iter().map(|node| node.y + node.height).fold(0.0, f64::max);
        Drawing {
            edges: self.edges.iter().zip(chains).map(edge).collect(),
            nodes,
            width: right,
            height: bottom,
        }
    }
}

impl Place {
    fn of(width: f64) -> Self {
        Place { width, above: Vec::new(), below: Vec::new(), x: 0.0 }
    }
}

/// Orders each layer by the mean place of neighbours, then moves boxes towards these as far as order allows.
fn arrange(places: &mut [Place], layers: &mut [Vec<usize>]) {
    layers.iter().for_each(|layer| pack(places, layer));
    for sweep in 0..SWEEPS {
        let downwards = sweep % 2 == 0;
        let order: Vec<usize> =
            if downwards { (0..layers.len()).collect() } else { (0..layers.len()).rev().collect() };
        for index in order {
            let wanted = |place: usize| wish(places, place, downwards);
            let mut keyed: Vec<(f64, usize)> =
                layers[index].iter().map(|&place| (wanted(place), place)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            layers[index] = keyed.iter().map(|(_, place)| *place).collect();
            spread(places, &keyed);
        }
    }
}

/// Side by side from the left.
fn pack(places: &mut [Place], layer: &[usize]) {
    let mut x = 0.0;
    for &place in layer {
        places[place].x = x;
        x += places[place].width + BOX_GAP;
    }
}

/// The middle that a place would like: the mean of its neighbours on one side.
fn wish(places: &[Place], place: usize, downwards: bool) -> f64 {
    let own = &places[place];
    let side = if downwards { &own.above } else { &own.below };
    if side.is_empty() {
        return own.x + own.width / 2.0;
    }
    let middles = side.iter().map(|&other| places[other].x + places[other].width / 2.0);
    middles.sum::<f64>() / side.len() as f64
}

/// Puts places where they would like to be, in order and without overlap. What does not fit is shifted as a whole, so that
/// the layer stays where its wishes are on average.
fn spread(places: &mut [Place], keyed: &[(f64, usize)]) {
    let mut right = f64::NEG_INFINITY;
    let mut moved = 0.0;
    for &(wanted, place) in keyed {
        let left = (wanted - places[place].width / 2.0).max(right + BOX_GAP);
        let left = if left.is_finite() { left } else { 0.0 };
        moved += left - (wanted - places[place].width / 2.0);
        places[place].x = left;
        right = left + places[place].width;
    }
    let shift = moved / keyed.len().max(1) as f64;
    keyed.iter().for_each(|&(_, place)| places[place].x -= shift);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Neighbourhood {
        let nodes = (0..nodes).map(|node| (node as u32, 0)).collect();
        Neighbourhood { nodes, edges: edges.to_vec(), cut: Vec::new() }
    }

    fn overlaps(drawing: &Drawing) -> bool {
        let nodes = &drawing.nodes;
        nodes.iter().enumerate().any(|(place, a)| {
            nodes[place + 1..].iter().any(|b| a.y == b.y && a.x < b.x + b.width && b.x < a.x + a.width)
        })
    }

    #[test]
    fn users_stand_below_their_operands_and_nothing_overlaps() {
        // A diamond with a line past it.
        let drawing = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 4)]).draw(|_| 100.0);
        for edge in &drawing.edges {
            assert!(drawing.nodes[edge.from].y < drawing.nodes[edge.to].y, "{edge:?}");
        }
        assert!(!overlaps(&drawing), "{drawing:?}");
        let past =
            drawing.edges.iter().find(|edge| (edge.from, edge.to) == (0, 4)).map(|edge| edge.points.len());
        assert_eq!(past, Some(4), "it passes two layers");
    }

    #[test]
    fn many_boxes_in_one_layer_are_side_by_side() {
        let edges: Vec<(usize, usize)> = (1..100).map(|user| (0, user)).collect();
        let drawing = graph(100, &edges).draw(|node| 40.0 + node as f64);
        assert!(!overlaps(&drawing));
        assert!(drawing.nodes.iter().all(|node| node.x >= 0.0 && node.x.is_finite()));
    }

    #[test]
    fn nothing_and_odd_edges_do_no_harm() {
        assert_eq!(graph(0, &[]).draw(|_| 1.0).nodes.len(), 0);
        // An edge against the order of the program cannot be, but a damaged file may have one.
        assert_eq!(graph(2, &[(1, 0), (0, 0)]).draw(|_| 1.0).edges.len(), 2);
    }
}
