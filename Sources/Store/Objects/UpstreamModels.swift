import Mapping

/// The models of one upstream with the tools that work by them.
struct UpstreamModels: Sendable {
    let models: Models
    /// For how long after a write or a detail answer lists do not count, in microseconds.
    let lag: Int64
    let normaliser: Normaliser
    let mapper: DocumentMapper
    /// Knows which members do not move between some routes.
    var composer: Composer

    init(_ models: Models, lag: Int64, objectLimit: Int) {
        self.models = models
        self.lag = lag
        normaliser = Normaliser(models: models, objectLimit: objectLimit)
        mapper = DocumentMapper(models: models)
        composer = Composer(models: models, lag: lag)
    }
}
