import Mapping

/// The models of one upstream with the tools that work by them.
struct UpstreamModels: Sendable {
    let models: Models
    /// How far its responses may lag behind the truth.
    let lag: Lag
    let normaliser: Normaliser
    let mapper: DocumentMapper
    let composer: Composer

    init(_ models: Models, lag: Lag, objectLimit: Int) {
        self.models = models
        self.lag = lag
        normaliser = Normaliser(models: models, objectLimit: objectLimit)
        mapper = DocumentMapper(models: models)
        composer = Composer(models: models, lag: lag)
    }
}
