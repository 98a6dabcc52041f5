//! The window that explains one node: what holds it first, then its pods.

use plimsoll_model::symbol::known;
use plimsoll_model::{Cluster, Node};
use plimsoll_sim::World;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::narrate::Voice;
use super::rows::Row;
use super::wrapped::{fit, wrap};
use crate::terminal::plural;

/// Draws the window over an area, as high as it needs to be.
pub(crate) fn draw(frame: &mut Frame<'_>, world: &World, row: &Row<'_>, voice: &Voice, area: Rect) {
    let width = area.width.saturating_sub(8).max(20).min(area.width);
    let inner = usize::from(width.saturating_sub(4));
    let texts = match row.node {
        Some(node) => node_texts(&world.cluster, node, voice),
        None => vec![format!(
            "asked for {}s ago; it has not joined the cluster yet",
            world.now().since(row.since).as_secs()
        )],
    };
    let entries: Vec<Vec<String>> = texts.iter().map(|text| wrap(text, inner, 4)).collect();
    let rows = fit(&entries, usize::from(area.height.saturating_sub(2)));
    let height = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let popup = Rect { x: area.x + (area.width - width) / 2, y: area.y, width, height };
    frame.render_widget(Clear, popup);
    let block = Block::bordered().title(format!(" {} ", row.name)).padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Paragraph::new(rows.join("\n")).block(block), popup);
}

fn node_texts(cluster: &Cluster, node: &Node, voice: &Voice) -> Vec<String> {
    let mut texts = Vec::new();
    match voice.verdicts.get(cluster.text(node.name)) {
        Some(reasons) => {
            texts.push("idle, but it stays:".to_owned());
            texts.extend(reasons.iter().map(|reason| format!("  - {reason}")));
        }
        None if node.taint(known::TO_BE_DELETED).is_some() => texts.push("on its way out".to_owned()),
        None => texts.push("it is used".to_owned()),
    }
    let pods: Vec<_> = cluster.pods.iter().filter(|pod| pod.node == Some(node.name)).collect();
    texts.push(plural(pods.len(), "pod") + if pods.is_empty() { "" } else { ":" });
    for pod in pods {
        let requests = &cluster.specs[pod.held].requests;
        texts.push(format!(
            "  {}   cpu {}m   memory {}Mi{}",
            cluster.pod_name(pod),
            requests.cpu_milli,
            requests.memory_bytes >> 20,
            if pod.deletion.is_some() { "   ending" } else { "" }
        ));
    }
    texts
}
