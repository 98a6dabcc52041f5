//! The sign to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, SIGINT and SIGQUIT, which all mean: end in good order.
#[derive(Debug)]
pub(super) struct Stop([Signal; 3]);

impl Stop {
    pub(super) fn listen() -> std::io::Result<Self> {
        let [term, int, quit] = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()].map(signal);
        Ok(Self([term?, int?, quit?]))
    }

    /// Waits for one of them.
    pub(super) async fn wanted(&mut self) {
        let [term, int, quit] = &mut self.0;
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = quit.recv() => {}
        }
    }
}
