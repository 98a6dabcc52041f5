//! What a plug-in is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a plug-in is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Talks to a cloud.
    CloudProvider,
    /// Ranks ways to grow.
    Expander,
}

impl Kind {
    /// The interface that it exports.
    pub fn export(self) -> &'static str {
        match self {
            Self::CloudProvider => "provider",
            Self::Expander => "ranking",
        }
    }
    /// The world that authors build for.
    pub fn world(self) -> &'static str {
        match self {
            Self::CloudProvider => "cloud-provider",
            Self::Expander => "expander",
        }
    }
    /// What it is, with its article.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::CloudProvider => "a cloud provider",
            Self::Expander => "an expander",
        }
    }
    /// Where to name it, if it was named in the wrong flag.
    pub fn use_instead(self) -> &'static str {
        match self {
            Self::CloudProvider => "name it in --cloud-provider instead",
            Self::Expander => "name it in --expander instead",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.world())
    }
}
