//! The demo on a terminal: nodes (`rows`), pending pods as a queue, decisions with their reasons, one node (`explain`).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use plimsoll_model::Cluster;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as TextLine, Span};
use ratatui::widgets::{Block, Paragraph};

use super::headless::summary;
use super::narrate::{Line, Tone, clock};
use super::stage::Stage;
use super::wrapped::wrap;
use super::{explain, rows};
use crate::exit::Exit;
use crate::terminal::{self, count, plural};

/// Pause between pictures.
const FRAME: Duration = Duration::from_millis(80);
/// Lines of news that are kept.
const NEWS: usize = 200;

/// What the person at the keyboard chose.
pub(crate) struct Controls {
    speed: u32,
    paused: bool,
    cursor: usize,
    explaining: bool,
    quit: bool,
    colour: bool,
}

/// Loads what the stage needs and plays the story until it is over and the person quits.
pub(crate) async fn watch(load: impl Future<Output = Result<Stage, Exit>>, speed: u32) -> Result<(), Exit> {
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut controls = Controls { speed, paused: false, cursor: 0, explaining: false, quit: false, colour };
    let screen = ratatui::try_init().context("cannot use the terminal; try --headless");
    let mut screen = screen.map_err(Exit::failed)?;
    let result = load_and_play(load, &mut controls, &mut screen).await;
    ratatui::try_restore().context("cannot restore the terminal").map_err(Exit::failed)?;
    terminal::print(&summary(&result?)).context("cannot write").map_err(Exit::failed)
}

async fn load_and_play(
    load: impl Future<Output = Result<Stage, Exit>>,
    controls: &mut Controls,
    screen: &mut ratatui::DefaultTerminal,
) -> Result<Stage, Exit> {
    let loading = screen.draw(|frame| frame.render_widget(Paragraph::new(" loading plug-ins…"), frame.area()));
    loading.context("cannot draw").map_err(Exit::failed)?;
    let mut stage = load.await?;
    play(&mut stage, controls, &mut VecDeque::new(), screen).await.map_err(Exit::failed)?;
    Ok(stage)
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
                controls.press(key.code, control, rows::rows(&stage.world()).len());
            }
        }
        tokio::time::sleep(FRAME).await;
    }
    Ok(())
}

impl Controls {
    fn press(&mut self, key: KeyCode, control: bool, rows: usize) {
        match key {
            KeyCode::Char('c') if control => self.quit = true,
            KeyCode::Char('q') => self.quit = true,
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+' | '=') => self.speed = (self.speed * 2).min(1000),
            KeyCode::Char('-') => self.speed = (self.speed / 2).max(1),
            KeyCode::Char('e') | KeyCode::Enter => self.explaining = !self.explaining,
            KeyCode::Esc => self.explaining = false,
            KeyCode::Up => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Down => self.cursor = (self.cursor + 1).min(rows.saturating_sub(1)),
            _ => {}
        }
    }

    /// A style of that colour, if colour is wanted.
    pub(crate) fn ink(&self, colour: Color) -> Style {
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

    let rows = rows::rows(&world);
    let cursor = controls.cursor.min(rows.len().saturating_sub(1));
    rows::draw(frame, nodes_area, cluster, &rows, cursor, &stage.voice, controls);
    draw_queue(frame, queue_area, cluster, stage, controls);
    draw_news(frame, log, news, controls);
    frame.render_widget(
        Paragraph::new(" space pause · +/- speed · ↑↓ choose a node · e explain it · Esc back · q quit")
            .style(Style::new().add_modifier(Modifier::DIM)),
        keys,
    );
    if controls.explaining
        && let Some(row) = rows.get(cursor)
    {
        explain::draw(frame, &world, row, &stage.voice, body.union(log));
    }
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
        let rows = wrap(&format!(" {text}"), usize::from(area.width.saturating_sub(3)), 3);
        lines.extend(rows.into_iter().map(|row| TextLine::styled(row, controls.ink(Color::Red))));
    }
    let title = format!(" Pending: {} ", plural(total, "pod"));
    let queue = Paragraph::new(lines).block(Block::bordered().title(title));
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
        Tone::Plugin => Color::Magenta,
        Tone::Warning => Color::Red,
    };
    let width = usize::from(area.width.saturating_sub(3));
    // From the end, as many as fit when long lines are wrapped.
    let mut left = height;
    let mut shown = Vec::new();
    for line in news.iter().rev() {
        let begin = format!(" {} {} ", clock(line.at), line.tone.mark());
        let rows = wrap(&format!("{begin}{}", line.text), width, begin.chars().count());
        if rows.len() > left {
            break;
        }
        left -= rows.len();
        let ink = controls.ink(colour(line.tone));
        shown.extend(rows.into_iter().rev().map(|row| TextLine::styled(row, ink)));
    }
    shown.reverse();
    frame.render_widget(Paragraph::new(shown).block(Block::bordered().title(" What happened and why ")), area);
}
