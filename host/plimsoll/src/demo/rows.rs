//! Nodes as bars, with the machines that are still to become nodes.

use std::collections::BTreeMap;

use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node, Resources, Symbol, Time};
use plimsoll_sim::World;
use plimsoll_sim::cloud::MachineState;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::narrate::Voice;
use super::view::Controls;

/// A line of the list.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    kind: &'a str,
    /// None: a machine on its way.
    pub(crate) node: Option<&'a Node>,
    /// When the machine was asked for.
    pub(crate) since: Time,
}

/// Nodes and machines on their way, by name.
pub(crate) fn rows(world: &World) -> Vec<Row<'_>> {
    let cluster = &world.cluster;
    let kind = |node: &Node| node.labels.get(known::INSTANCE_TYPE).map_or("", |kind| cluster.text(kind));
    let nodes = cluster.nodes.iter().map(|node| Row {
        name: cluster.text(node.name),
        kind: kind(node),
        node: Some(node),
        since: world.now(),
    });
    let coming = world.pools.iter().flat_map(|pool| {
        let booting = pool.machines.iter().filter(|machine| machine.state == MachineState::Booting);
        booting.map(|machine| Row {
            name: &machine.id,
            kind: &pool.template.instance_type,
            node: None,
            since: machine.asked_at,
        })
    });
    let mut rows: Vec<Row<'_>> = nodes.chain(coming).collect();
    rows.sort_by_key(|row| row.name);
    rows
}

/// Draws the rows around the cursor.
pub(crate) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    cluster: &Cluster,
    rows: &[Row<'_>],
    cursor: usize,
    voice: &Voice,
    controls: &Controls,
) {
    let used = used_by_node(cluster);
    let height = usize::from(area.height.saturating_sub(2)).max(1);
    let first = (cursor + 1).saturating_sub(height);
    let name_width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let bar_width = usize::from(area.width).saturating_sub(name_width + 34).clamp(5, 40);
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate().skip(first).take(height) {
        let (word, colour) = state_of(row, voice);
        let (bar, figures) = match row.node {
            Some(node) => load(node, used.get(&node.name), bar_width),
            None => ("·".repeat(bar_width), " ".repeat(FIGURES)),
        };
        let mut line = Line::from(vec![
            Span::raw(format!(" {:name_width$} {:2} ", row.name, row.kind)),
            Span::styled(bar, controls.ink(colour)),
            Span::raw(figures),
            Span::styled(word, controls.ink(colour)),
        ]);
        if number == cursor {
            line = line.style(ratatui::style::Style::new().add_modifier(Modifier::REVERSED));
        }
        lines.push(line);
    }
    let coming = rows.iter().filter(|row| row.node.is_none()).count();
    let on_their_way = if coming > 0 { format!(", {coming} on their way") } else { String::new() };
    let title = format!(
        " Nodes {}–{} of {}{on_their_way} ",
        (first + 1).min(rows.len()),
        (first + height).min(rows.len()),
        rows.len()
    );
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// Width of what [`load`] writes beside the bar.
const FIGURES: usize = 19;

/// How full a node is: a bar for its cpu, and figures.
fn load(node: &Node, used: Option<&Resources>, bar_width: usize) -> (String, String) {
    let nothing = Resources::default();
    let used = used.unwrap_or(&nothing);
    let share = |used: i64, all: i64| if all > 0 { (used.max(0) as f64 / all as f64).min(1.0) } else { 0.0 };
    let cpu = share(used.cpu_milli, node.allocatable.cpu_milli);
    let memory = share(used.memory_bytes, node.allocatable.memory_bytes);
    let full = (cpu * bar_width as f64).round() as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(bar_width - full.min(bar_width)));
    (bar, format!(" cpu {:>3.0}% mem {:>3.0}% ", cpu * 100.0, memory * 100.0))
}

fn state_of(row: &Row<'_>, voice: &Voice) -> (&'static str, Color) {
    let Some(node) = row.node else { return ("coming", Color::Yellow) };
    if node.taint(known::TO_BE_DELETED).is_some() {
        ("going", Color::Red)
    } else if node.conditions.iter().any(is_false) {
        ("starts", Color::Yellow)
    } else if voice.verdicts.contains_key(row.name) {
        ("idle", Color::Blue)
    } else {
        ("", Color::Green)
    }
}

fn is_false(condition: &plimsoll_model::node::Condition) -> bool {
    condition.status == plimsoll_model::node::ConditionStatus::False
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
