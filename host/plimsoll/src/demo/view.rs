//! The demo on a terminal: nodes as bars, pending pods as a queue, decisions with their reasons.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, Resources, Symbol};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as TextLine, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::headless::summary;
use super::narrate::{Line, Tone, clock};
use super::stage::Stage;
use crate::terminal::{self, count, plural};

/// Pause between pictures.
const FRAME: Duration = Duration::from_millis(80);
/// Lines of news that are kept.
const NEWS: usize = 200;

/// What the person at the keyboard chose.
struct Controls {
    speed: u32,
    paused: bool,
    cursor: usize,
    explaining: bool,
    quit: bool,
    colour: bool,
}

/// Plays the story until it is over and the person quits.
pub(crate) async fn watch(mut stage: Stage, speed: u32) -> anyhow::Result<()> {
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut controls = Controls { speed, paused: false, cursor: 0, explaining: false, quit: false, colour };
    let mut news: VecDeque<Line> = VecDeque::new();
    let mut screen = ratatui::try_init().context("cannot use the terminal; try --headless")?;
    let result = play(&mut stage, &mut controls, &mut news, &mut screen).await;
    ratatui::try_restore().context("cannot restore the terminal")?;
    result?;
    terminal::print(&summary(&stage)).context("cannot write")
}

async fn play(
    stage: &mut Stage,
    controls: &mut Controls,
    news: &mut VecDeque<Line>,
    screen: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<()> {
    let mut last = Instant::now();
    while !controls.quit {
        let passed = last.elapsed();
        last = Instant::now();
        if !controls.paused && !stage.is_over() {
            let until = stage.now() + passed * controls.speed;
            while stage.now() < until && !stage.is_over() {
                for line in stage.advance(until).await {
                    news.push_back(line);
                    if news.len() > NEWS {
                        news.pop_front();
                    }
                }
            }
        }
        screen.draw(|frame| draw(frame, stage, controls, news)).context("cannot draw")?;
        while event::poll(Duration::ZERO).context("cannot read the keyboard")? {
            if let Event::Key(key) = event::read().context("cannot read the keyboard")?
                && key.kind == KeyEventKind::Press
            {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                controls.press(key.code, control, stage.world().cluster.nodes.len());
            }
        }
        tokio::time::sleep(FRAME).await;
    }
    Ok(())
}

impl Controls {
    fn press(&mut self, key: KeyCode, control: bool, nodes: usize) {
        match key {
            KeyCode::Char('c') if control => self.quit = true,
            KeyCode::Char('q') => self.quit = true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+' | '=') => self.speed = (self.speed * 2).min(1000),
            KeyCode::Char('-') => self.speed = (self.speed / 2).max(1),
            KeyCode::Char('e') | KeyCode::Enter => self.explaining = !self.explaining,
            KeyCode::Esc => self.explaining = false,
            KeyCode::Up => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down => self.cursor = (self.cursor + 1).min(nodes.saturating_sub(1)),
            _ => {}
        }
    }

    fn ink(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

fn draw(frame: &mut Frame<'_>, stage: &Stage, controls: &Controls, news: &VecDeque<Line>) {
    let world = stage.world();
    let cluster = &world.cluster;
    let [head, body, log, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(6),
        Constraint::Percentage(45),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [nodes_area, queue_area] =
        Layout::horizontal([Constraint::Percentage(68), Constraint::Percentage(32)]).areas(body);

    let state = match (stage.is_over(), controls.paused) {
        (true, _) => "the story is over".to_owned(),
        (false, true) => "paused".to_owned(),
        (false, false) => format!("×{}", controls.speed),
    };
    let running = cluster.pods.iter().filter(|pod| pod.node.is_some() && pod.deletion.is_none()).count();
    let title = format!(
        " Plimsoll   {}   {state}   {} · {} running",
        clock(stage.elapsed()),
        plural(cluster.nodes.len(), "node"),
        plural(running, "pod")
    );
    frame.render_widget(Paragraph::new(title).style(Style::new().add_modifier(Modifier::REVERSED)), head);

    let order = nodes_in_order(cluster);
    let cursor = controls.cursor.min(order.len().saturating_sub(1));
    draw_nodes(frame, nodes_area, cluster, &order, cursor, controls);
    draw_queue(frame, queue_area, cluster, stage, controls);
    draw_news(frame, log, news, controls);
    frame.render_widget(
        Paragraph::new(" space pause · +/- speed · ↑↓ choose a node · e explain it · q quit")
            .style(Style::new().add_modifier(Modifier::DIM)),
        keys,
    );
    if controls.explaining
        && let Some(node) = order.get(cursor).and_then(|&index| cluster.nodes.get(index))
    {
        explain(frame, cluster, node, stage, body);
    }
}

fn nodes_in_order(cluster: &Cluster) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cluster.nodes.len()).collect();
    order.sort_by_key(|&index| cluster.nodes.get(index).map(|node| cluster.text(node.name)));
    order
}

fn draw_nodes(
    frame: &mut Frame<'_>,
    area: Rect,
    cluster: &Cluster,
    order: &[usize],
    cursor: usize,
    controls: &Controls,
) {
    let used = used_by_node(cluster);
    let height = usize::from(area.height.saturating_sub(2)).max(1);
    let first = (cursor + 1).saturating_sub(height);
    let name_width = order
        .iter()
        .filter_map(|&index| cluster.nodes.get(index))
        .map(|node| cluster.text(node.name).chars().count())
        .max()
        .unwrap_or(0);
    let bar_width = usize::from(area.width).saturating_sub(name_width + 40).clamp(8, 40);
    let mut lines = Vec::new();
    for (row, &index) in order.iter().enumerate().skip(first).take(height) {
        let Some(node) = cluster.nodes.get(index) else { continue };
        let nothing = Resources::default();
        let used = used.get(&node.name).unwrap_or(&nothing);
        let share = |used: i64, all: i64| if all > 0 { (used.max(0) as f64 / all as f64).min(1.0) } else { 0.0 };
        let cpu = share(used.cpu_milli, node.allocatable.cpu_milli);
        let memory = share(used.memory_bytes, node.allocatable.memory_bytes);
        let (word, colour) = state_of(node);
        let full = (cpu * bar_width as f64).round() as usize;
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(bar_width - full.min(bar_width)));
        let kind = node.labels.get(known::INSTANCE_TYPE).map_or("", |kind| cluster.text(kind));
        let mut line = TextLine::from(vec![
            Span::raw(format!(" {:name_width$} {kind:3} ", cluster.text(node.name))),
            Span::styled(bar, controls.ink(colour)),
            Span::raw(format!(" cpu {:>3.0}% mem {:>3.0}% {:>3} ", cpu * 100.0, memory * 100.0, used.pods)),
            Span::styled(word, controls.ink(colour)),
        ]);
        if row == cursor {
            line = line.style(Style::new().add_modifier(Modifier::REVERSED));
        }
        lines.push(line);
    }
    let title =
        format!(" Nodes {}–{} of {} ", (first + 1).min(order.len()), (first + height).min(order.len()), order.len());
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

fn state_of(node: &Node) -> (&'static str, Color) {
    if node.taint(known::TO_BE_DELETED).is_some() {
        ("going", Color::Red)
    } else if node.conditions.iter().any(is_false) {
        ("starting", Color::Yellow)
    } else {
        ("", Color::Green)
    }
}

fn is_false(condition: &plimsoll_model::node::Condition) -> bool {
    condition.status == plimsoll_model::node::ConditionStatus::False
}

fn draw_queue(frame: &mut Frame<'_>, area: Rect, cluster: &Cluster, stage: &Stage, controls: &Controls) {
    let mut waiting: BTreeMap<String, usize> = BTreeMap::new();
    for pod in cluster.pods.iter().filter(|pod| pod.node.is_none() && pod.deletion.is_none()) {
        let owner = pod.owner.map_or(&*pod.name, |owner| cluster.text(owner.name));
        let namespace = cluster.text(cluster.specs[pod.spec].namespace);
        *waiting.entry(format!("{namespace}/{owner}")).or_default() += 1;
    }
    let total: usize = waiting.values().sum();
    let mut lines: Vec<TextLine<'_>> = waiting
        .iter()
        .map(|(name, pods)| {
            let dots = "▪".repeat((*pods).min(24));
            TextLine::from(vec![
                Span::raw(format!(" {name} ×{} ", count(*pods))),
                Span::styled(dots, controls.ink(Color::Magenta)),
            ])
        })
        .collect();
    for text in &stage.voice.unhelped {
        lines.push(TextLine::styled(format!(" {text}"), controls.ink(Color::Red)));
    }
    let title = format!(" Pending: {} ", plural(total, "pod"));
    let queue = Paragraph::new(lines).wrap(Wrap { trim: false }).block(Block::bordered().title(title));
    frame.render_widget(queue, area);
}

fn draw_news(frame: &mut Frame<'_>, area: Rect, news: &VecDeque<Line>, controls: &Controls) {
    let height = usize::from(area.height.saturating_sub(2));
    let colour = |tone| match tone {
        Tone::Story => Color::Cyan,
        Tone::Cluster => Color::Gray,
        Tone::Up => Color::Green,
        Tone::Down => Color::Blue,
        Tone::Kept => Color::Yellow,
        Tone::Warning => Color::Red,
    };
    let width = usize::from(area.width.saturating_sub(2));
    // From the end, as many as fit when long lines are wrapped.
    let mut left = height;
    let mut shown = Vec::new();
    for line in news.iter().rev() {
        let text = format!(" {} {} {}", clock(line.at), line.tone.mark(), line.text);
        let rows = text.chars().count().div_ceil(width.max(1)).max(1);
        if rows > left {
            break;
        }
        left -= rows;
        shown.push(TextLine::styled(text, controls.ink(colour(line.tone))));
    }
    shown.reverse();
    let log =
        Paragraph::new(shown).wrap(Wrap { trim: false }).block(Block::bordered().title(" What happened and why "));
    frame.render_widget(log, area);
}

fn explain(frame: &mut Frame<'_>, cluster: &Cluster, node: &Node, stage: &Stage, area: Rect) {
    let name = cluster.text(node.name);
    let mut lines = vec![match stage.voice.verdicts.get(name) {
        Some(why) => TextLine::raw(format!("idle, but it stays: {why}")),
        None if node.taint(known::TO_BE_DELETED).is_some() => TextLine::raw("on its way out"),
        None => TextLine::raw("it is used"),
    }];
    lines.push(TextLine::raw(""));
    let on = |pod: &&plimsoll_model::Pod| pod.node == Some(node.name);
    for pod in cluster.pods.iter().filter(on) {
        let requests = &cluster.specs[pod.spec].requests;
        lines.push(TextLine::raw(format!(
            "{}   cpu {}m   memory {}Mi{}",
            cluster.pod_name(pod),
            requests.cpu_milli,
            requests.memory_bytes >> 20,
            if pod.deletion.is_some() { "   ending" } else { "" }
        )));
    }
    let width = area.width.saturating_sub(8).max(20);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let popup = Rect { x: area.x + 4, y: area.y, width, height };
    frame.render_widget(Clear, popup);
    let block = Block::bordered().title(format!(" {name} "));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), popup);
}

/// What the pods of each node ask for.
fn used_by_node(cluster: &Cluster) -> BTreeMap<Symbol, Resources> {
    let mut used: BTreeMap<Symbol, Resources> = BTreeMap::new();
    for pod in &cluster.pods {
        if let Some(node) = pod.node {
            let sum = used.entry(node).or_default();
            *sum = sum.plus(&cluster.specs[pod.held].requests);
        }
    }
    used
}
