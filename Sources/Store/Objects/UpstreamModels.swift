import Mapping

/// The models of one upstream with the tools that work by them.
struct UpstreamModels: Sendable {
    let models: Models
    let normaliser: Normaliser
    let composer: Composer
    /// Whether all that is to be known of an object is the newest of its members.
    let arePlain: Bool

    init(_ models: Models, lag: Int64) {
        self.models = models
        arePlain = models.arePlain
        normaliser = Normaliser(models: models)
        composer = Composer(models: models, lag: lag)
    }
}
