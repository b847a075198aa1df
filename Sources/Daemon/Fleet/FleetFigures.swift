package import Basics
package import Store

/// How this machine does in its fleet, for `/metrics` and `larder status`.
package struct FleetFigures: Sendable {
    package struct Upstream: Sendable {
        package var key: UpstreamKey
        /// Zero while it is not known.
        package var epoch: UInt64
        /// How far its stream is read, as the server names entries.
        package var position: String
        /// Whether everything is read that the stream had a moment ago.
        package var isFollowing: Bool
    }

    package var server = ""
    /// The server's version; empty before the first connection.
    package var version = ""
    package var isConnected = false
    /// Since when it is connected, or is not, in µs of the store's clock.
    package var since: Int64 = 0
    /// Why it is not connected.
    package var trouble: String?
    /// Why it takes no commands although it is connected.
    package var sendingTrouble: String?
    /// By how much times of other machines may be wrong, in µs.
    package var clockError: Int64 = 0
    /// Time from the announcement of another machine until it is applied here.
    package var delays = Histogram()
    /// The delay of the last one, in seconds.
    package var lastDelay: Double = 0
    /// When the server replied last, in µs of the store's clock; 0 for never.
    package var lastReply: Int64 = 0
    /// Documents of other machines that were found, and used.
    package var found: UInt64 = 0
    /// Documents that were found, but were outdated or not readable yet.
    package var refused: UInt64 = 0
    /// Requests for which no machine had a document.
    package var missed: UInt64 = 0
    /// Requests that waited for a fetch of another machine.
    package var waited: UInt64 = 0
    /// Documents that this machine has shared.
    package var shared: UInt64 = 0
    /// Announcements of this machine, and of others.
    package var announced: UInt64 = 0
    package var applied: UInt64 = 0
    /// What did not open: it is not of this fleet, or was changed.
    package var unopened: UInt64 = 0
    /// Requests and announcements for which the server took too long.
    package var timedOut: UInt64 = 0
    /// Epochs that have begun since the start.
    package var epochs: UInt64 = 0
    /// Announcements that wait for the server.
    package var queued = 0
    package var upstreams: [Upstream] = []
}
