//! The dashboard: the current sample and its recent history on a terminal.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Gauge, Paragraph, Sparkline};
use stepscope_capture::sample::{Gpu, Sample};
use stepscope_render::format::{UNKNOWN, bytes, decimal, duration_ms, percent, plural, printable};

/// Samples kept for the history graphs: more than any terminal is wide.
const PAST: usize = 600;
/// Maximum width of a core's bar.
const CORE_WIDTH: u16 = 22;

/// The content of the screen.
pub(super) struct Dashboard {
    title: String,
    cores: usize,
    newest: Sample,
    paused: bool,
    machine: VecDeque<u64>,
    tree: VecDeque<u64>,
    memory: VecDeque<u64>,
    disk: VecDeque<u64>,
    net: VecDeque<u64>,
}

impl Dashboard {
    pub(super) fn new(title: String, cores: usize) -> Self {
        let past = || VecDeque::with_capacity(PAST);
        Dashboard {
            title,
            cores,
            newest: Sample::default(),
            paused: false,
            machine: past(),
            tree: past(),
            memory: past(),
            disk: past(),
            net: past(),
        }
    }

    /// Pauses or resumes the display; sampling continues.
    pub(super) fn pause(&mut self) {
        self.paused = !self.paused;
    }

    pub(super) fn take(&mut self, sample: Sample) {
        if self.paused {
            return;
        }
        let permille = |share: Option<f64>| (share.unwrap_or(0.0) * 1e3) as u64;
        let whole = |value: Option<f64>| value.unwrap_or(0.0) as u64;
        let sum = |a: Option<f64>, b: Option<f64>| whole(a) + whole(b);
        let (machine, tree) = (&sample.machine, sample.tree.as_ref());
        push(&mut self.machine, permille(machine.cpu));
        push(&mut self.tree, permille(tree.and_then(|tree| tree.cpu)));
        push(&mut self.memory, tree.map_or(0, |tree| tree.rss));
        push(&mut self.disk, sum(machine.disk_read, machine.disk_write));
        push(&mut self.net, sum(machine.net_receive, machine.net_send));
        self.newest = sample;
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let width = frame.area().width.max(1);
        let per_row = (width / CORE_WIDTH).max(1);
        let core_rows = (self.cores as u16).div_ceil(per_row).min(frame.area().height / 3);
        let gpu_rows = self.newest.gpus.len().min(8) as u16 * 2;
        let [head, cores, processors, memory, traffic, gpus, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(core_rows + 2),
            Constraint::Min(4),
            Constraint::Length(4),
            Constraint::Length(4),
            Constraint::Length(if gpu_rows > 0 { gpu_rows + 2 } else { 0 }),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.head(frame, head);
        self.cores(frame, cores, per_row);
        self.processors(frame, processors);
        self.memory(frame, memory);
        self.traffic(frame, traffic);
        self.gpus(frame, gpus);
        frame.render_widget(Line::from(" q quit   p pause").dim(), foot);
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let mut parts = vec![
            Span::from(" stepscope monitor ").bold().reversed(),
            Span::from(format!(" {}", printable(&self.title))),
            Span::from(format!("   {}", duration_ms(self.newest.elapsed.as_secs_f64() * 1e3))).dim(),
        ];
        if self.paused {
            parts.push(Span::from("   paused").yellow());
        }
        frame.render_widget(Line::from(parts), area);
    }

    fn cores(&self, frame: &mut Frame<'_>, area: Rect, per_row: u16) {
        let waits = self.newest.machine.io_wait.filter(|&share| share >= 0.005);
        let waits = waits.map_or(String::new(), |share| format!(", waiting for disks {}", percent(share)));
        let title = format!(" cores: {}{waits} ", known(self.newest.machine.cpu.map(percent)));
        let block = Block::bordered().title(title);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        for (core, share) in self.newest.machine.cores.iter().enumerate() {
            let (row, column) = (core as u16 / per_row, core as u16 % per_row);
            if row >= inner.height {
                break;
            }
            let wide = inner.width / per_row;
            let cell = Rect::new(inner.x + column * wide, inner.y + row, wide, 1);
            let bars = usize::from(wide.saturating_sub(10));
            let filled = (share * bars as f64).round() as usize;
            let bar = format!("{}{}", "█".repeat(filled.min(bars)), "·".repeat(bars.saturating_sub(filled)));
            let line = Line::from(vec![
                Span::from(format!("{core:>3} ")).dim(),
                Span::from(bar).style(heat(*share)),
                Span::from(format!(" {:>3}%", decimal(share * 100.0, 0))),
            ]);
            frame.render_widget(line, cell);
        }
    }

    fn processors(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(tree) = &self.newest.tree else {
            self.spark(frame, area, " machine, all cores ", &self.machine, Some(1_000));
            return;
        };
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        self.spark(frame, left, " machine, all cores ", &self.machine, Some(1_000));
        let limit =
            self.newest.cgroup.cpu_limit.map_or(String::new(), |limit| format!(" of {limit:.1} allowed"));
        let title = format!(
            " run: {} cores{limit}, {}, {} ",
            known(tree.cpu.map(|cpu| decimal(cpu, 2))),
            plural(tree.processes, "process", "processes"),
            plural(tree.threads, "thread", "threads")
        );
        self.spark(frame, right, &title, &self.tree, None);
    }

    fn memory(&self, frame: &mut Frame<'_>, area: Rect) {
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        let (machine, group) = (&self.newest.machine, &self.newest.cgroup);
        let used =
            machine.memory_total.zip(machine.memory_available).map(|(all, left)| all.saturating_sub(left));
        let (used, limit, name) = match (group.memory_limit, group.memory_used) {
            (Some(limit), used) => (used, Some(limit), " memory, control group "),
            (None, _) => (used, machine.memory_total, " memory, machine "),
        };
        let share = used.zip(limit).map_or(0.0, |(used, limit)| used as f64 / limit.max(1) as f64);
        let size = |value: Option<u64>| known(value.map(|value| bytes(value as f64)));
        let gauge = Gauge::default()
            .block(Block::bordered().title(name))
            .gauge_style(heat(share))
            .ratio(share.clamp(0.0, 1.0))
            .label(format!("{} of {}", size(used), size(limit)));
        frame.render_widget(gauge, left);
        let title = match &self.newest.tree {
            Some(tree) => {
                let own = tree.pss.map_or(String::new(), |pss| {
                    format!(", {} with shared pages counted once", bytes(pss as f64))
                });
                format!(" processes: {}{own} ", bytes(tree.rss as f64))
            }
            None => format!(" swap used: {} ", size(machine.swap_used)),
        };
        self.spark(frame, right, &title, &self.memory, None);
    }

    fn traffic(&self, frame: &mut Frame<'_>, area: Rect) {
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        let machine = &self.newest.machine;
        let rate = |value: Option<f64>| known(value.map(|value| format!("{}/s", bytes(value))));
        let disk = format!(" disks: read {}, write {} ", rate(machine.disk_read), rate(machine.disk_write));
        let net = format!(" network: in {}, out {} ", rate(machine.net_receive), rate(machine.net_send));
        self.spark(frame, left, &disk, &self.disk, None);
        self.spark(frame, right, &net, &self.net, None);
    }

    fn gpus(&self, frame: &mut Frame<'_>, area: Rect) {
        if area.height == 0 {
            return;
        }
        let block = Block::bordered().title(" GPUs ");
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let of_tree = self.newest.gpu_memory_of_tree.iter();
        let lines =
            self.newest.gpus.iter().zip(of_tree).flat_map(|(gpu, own)| gpu_lines(gpu, *own, inner.width));
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), inner);
    }

    /// Draws the history as a line; the newest value is on the right.
    fn spark(&self, frame: &mut Frame<'_>, area: Rect, title: &str, past: &VecDeque<u64>, most: Option<u64>) {
        let shown = usize::from(area.width.saturating_sub(2));
        let data: Vec<u64> = past.iter().skip(past.len().saturating_sub(shown)).copied().collect();
        let spark = Sparkline::default()
            .block(Block::bordered().title(title.to_owned()))
            .style(Style::new().fg(Color::Cyan))
            .data(data);
        frame.render_widget(
            match most {
                Some(most) => spark.max(most),
                None => spark,
            },
            area,
        );
    }
}

/// Two lines: utilisation, and everything else that is known.
fn gpu_lines(gpu: &Gpu, of_tree: Option<u64>, width: u16) -> [Line<'static>; 2] {
    let busy = gpu.busy.unwrap_or(0.0);
    let bars = usize::from(width.saturating_sub(40)).min(40);
    let filled = (busy * bars as f64).round() as usize;
    let name = gpu.name.as_deref().map_or_else(|| "GPU".to_owned(), printable);
    let bar = format!("{}{}", "█".repeat(filled.min(bars)), "·".repeat(bars.saturating_sub(filled)));
    let first = Line::from(vec![
        Span::from(format!("{:>2} {name:<24.24} ", gpu.index)),
        Span::from(bar).style(heat(busy)),
        Span::from(format!(" {}", known(gpu.busy.map(percent)))),
    ]);
    let size = |value: u64| bytes(value as f64);
    let mut parts = Vec::new();
    parts.extend(gpu.memory_used.map(|used| {
        let all = gpu.memory_total.map_or(String::new(), |all| format!(" of {}", size(all)));
        format!("memory {}{all}", size(used))
    }));
    parts.extend(of_tree.map(|own| format!("{} used by these processes", size(own))));
    parts.extend(gpu.power.map(|power| format!("{} W", decimal(power, 0))));
    parts.extend(gpu.clock.map(|clock| format!("{} MHz", decimal(clock, 0))));
    parts.extend(gpu.temperature.map(|heat| format!("{} °C", decimal(heat, 0))));
    let held = gpu.throttled.iter().flatten().map(|reason| format!("throttled: {}", reason.key()));
    parts.extend(held);
    [first, Line::from(format!("   {}", parts.join(", "))).dim()]
}

fn push(past: &mut VecDeque<u64>, value: u64) {
    if past.len() >= PAST {
        past.pop_front();
    }
    past.push_back(value);
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Green, yellow, then red.
fn heat(share: f64) -> Style {
    Style::new().fg(match share {
        share if share >= 0.9 => Color::Red,
        share if share >= 0.6 => Color::Yellow,
        _ => Color::Green,
    })
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use stepscope_capture::sample::{Machine, Tree};

    use super::*;

    fn drawn(dashboard: &Dashboard, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| dashboard.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn sample() -> Sample {
        Sample {
            machine: Machine {
                cpu: Some(0.5),
                cores: vec![1.0, 0.0],
                memory_total: Some(8_000_000_000),
                memory_available: Some(6_000_000_000),
                ..Machine::default()
            },
            tree: Some(Tree {
                cpu: Some(1.5),
                processes: 3,
                threads: 9,
                rss: 1_000_000_000,
                ..Tree::default()
            }),
            gpus: vec![Gpu { name: Some("Made-up GPU".to_owned()), busy: Some(0.64), ..Gpu::default() }],
            gpu_memory_of_tree: vec![None],
            ..Sample::default()
        }
    }

    #[test]
    fn everything_that_is_known_is_on_the_screen() {
        let mut dashboard = Dashboard::new("train.py".to_owned(), 2);
        dashboard.take(sample());
        let screen = drawn(&dashboard, 110, 30);
        for text in
            ["train.py", "cores: 50.0 %", "100%", "1.50 cores", "3 processes", "2.00 GB of 8.00 GB", "64.0 %"]
        {
            assert!(screen.contains(text), "{text}\n{screen}");
        }
        assert!(screen.contains("read –"), "what is not known is not zero\n{screen}");
    }

    #[test]
    fn a_pause_keeps_the_picture() {
        let mut dashboard = Dashboard::new("x".to_owned(), 2);
        dashboard.take(sample());
        dashboard.pause();
        dashboard.take(Sample::default());
        let screen = drawn(&dashboard, 110, 30);
        assert!(screen.contains("paused") && screen.contains("1.50 cores"), "{screen}");
    }

    #[test]
    fn names_cannot_steer_the_terminal() {
        let mut dashboard = Dashboard::new("\u{1b}]0;title\u{7}\u{1b}[2Jtrain\r\n\u{202e}.py".to_owned(), 2);
        let gpu = Gpu { name: Some("\u{1b}[31mGPU\u{9b}2J".to_owned()), ..Gpu::default() };
        dashboard.take(Sample { gpus: vec![gpu], ..sample() });
        let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
        terminal.draw(|frame| dashboard.draw(frame)).unwrap();
        let cells = terminal.backend().buffer().content();
        let steers = |text: &str| text.chars().any(|c| c.is_control() || c == '\u{202e}');
        assert_eq!(cells.iter().find(|cell| steers(cell.symbol())), None);
    }

    #[test]
    fn no_terminal_is_too_small() {
        let mut dashboard = Dashboard::new("x".to_owned(), 512);
        dashboard
            .take(Sample { machine: Machine { cores: vec![0.3; 512], ..Machine::default() }, ..sample() });
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 80)] {
            drawn(&dashboard, width, height);
        }
    }
}
