//! The stream on which a server of the handshake era speaks of its own accord. It is a courtesy: whatever becomes of it delays and fails
//! nothing, and without it the server's list is read again at the boundaries of steps.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Link;
use super::stream::{Ended, NotOpened, Place};
use crate::limits;

impl Link {
    /// Listens for as long as the server keeps the stream up, opening it again when it ends: not for ever when it ends at once.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut place = Place::default();
        let mut in_a_row = 0u64;
        while in_a_row <= limits::MCP_LISTENS {
            let begun = Instant::now();
            match self.get(place.last()).await {
                Ok(response) => {
                    self.exchange.set_hears_changes(true);
                    let ended = self.follow(response, None, &mut place).await;
                    self.exchange.set_hears_changes(false);
                    if let Ended::Enough(_) = ended {
                        return;
                    }
                }
                Err(NotOpened::Passing(_)) => {}
                Err(NotOpened::Refused(_)) => return,
            }
            let was_steady = begun.elapsed() >= Duration::from_secs(limits::MCP_STEADY_SECONDS);
            in_a_row = if was_steady { 0 } else { in_a_row.saturating_add(1) };
            sleep(place.wait()).await;
        }
    }
}
