//! Builds providers and expanders to components and embeds the expanders.
