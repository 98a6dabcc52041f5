//! Objects of a cluster without what tells whose cluster it is; the loop decides the same about them.
//!
//! ```text
//!  objects ─► collect: every text that is renamed ─► Names: one new name each, in the same order ─► rewrite
//! ```
//!
//! Every text is renamed unless it is known to mean something ([`words`]): kinds, effects, amounts, times, label keys,
//! drivers. A text is renamed the same way wherever it stands, so what referred to each other still does, and new names
//! are in the order of the old ones, since ties are broken by order; lots are drawn alike too. Annotations that no decision hangs on are left out,
//! as are images, commands, variables and parameters.
//!
//! What stays: label keys, taint keys, resource names, drivers, attributes of devices and the expressions about them,
//! amounts, sizes, times, and a few words that everybody has, such as `kube-system` and `linux`.

mod names;
mod priorities;
mod special;
mod state;
mod walk;
mod words;

use serde_json::Value;

pub use names::Key;

use names::Names;

/// Why objects were not anonymized.
#[derive(Debug, thiserror::Error)]
pub enum AnonymizeError {
    /// The priorities of the groups cannot be rewritten.
    #[error("{0}")]
    Priorities(#[from] plimsoll_core::priorities::PriorityError),
    /// The state of the loop cannot be read.
    #[error("LoopState: {0}")]
    State(#[from] serde_json::Error),
}

/// The objects, one for each of those that are given and that the loop reads.
///
/// # Errors
///
/// If something that refers to names cannot be read.
pub fn anonymize(objects: Vec<Value>, key: &Key) -> Result<Vec<Value>, AnonymizeError> {
    let mut objects: Vec<Value> = objects.into_iter().filter_map(special::reduced).collect();
    let context = special::Context::of(&objects);
    let mut texts = context.texts();
    for object in &mut objects {
        texts.extend(state::texts(object)?);
        walk::each_text(object, &context, &mut |text| {
            texts.insert(text.clone());
        });
    }
    let names = Names::new(texts, &context.groups, key);
    for object in &mut objects {
        if priorities::rewrite(object, &context, &names)? || state::rewrite(object, &names)? {
            continue;
        }
        walk::each_text(object, &context, &mut |text| *text = context.renamed(text, &names));
        walk::each_key(object, &names);
    }
    Ok(objects)
}
