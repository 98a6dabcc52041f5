//! The table of all families, as Markdown.

use super::families::ALL;
use super::family::{Family, Peer, When};

/// The table of all families: what the Go autoscaler has, and what is new.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Metrics\n\n<!-- made by `make docs`; a test keeps it true -->\n\nServed at `/metrics` on `--address`, in the \
         Prometheus text format. Names that begin with `cluster_autoscaler_` are the Go Cluster Autoscaler's; *here* says \
         whether a family means the same.\n",
    );
    for (title, new) in [("The Go autoscaler's", false), ("New", true)] {
        text.push_str(&format!("\n## {title}\n\n| name | type | labels | meaning | here |\n|---|---|---|---|---|\n"));
        for family in ALL.iter().filter(|family| (family.peer == Peer::New) == new) {
            text.push_str(&row(family));
        }
    }
    text
}

fn row(family: &Family) -> String {
    let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
    let here = match family.peer {
        Peer::Same("") => "same".to_owned(),
        Peer::Same(note) => format!("same; {note}"),
        Peer::NotApplicable(why) => format!("not applicable: {why}"),
        Peer::New => "new".to_owned(),
    };
    let here = match family.when {
        When::Flag(flag) => format!("{here}; with `--{flag}`"),
        When::Always | When::Never => here,
    };
    format!("| `{}` | {} | {} | {} | {here} |\n", family.name, family.kind.name(), labels.join(", "), family.help)
}
