/// All streams of events that are open; keeps each until it is over.
///
/// The upstream loop only.
final class LiveExchanges {
    private var open: [ObjectIdentifier: LiveExchange] = [:]

    func insert(_ exchange: LiveExchange) {
        open[ObjectIdentifier(exchange)] = exchange
    }

    func remove(_ exchange: LiveExchange) {
        open[ObjectIdentifier(exchange)] = nil
    }
}
