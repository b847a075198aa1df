/// Takes bodies apart into objects (law 5: every byte has one owner, the innermost declared model with an identity).
public struct Normaliser: Sendable {
    let models: Models

    /// A normaliser for the models of one upstream.
    public init(models: Models) {
        self.models = models
    }

    /// Takes one body apart. Never fails: what does not fit is kept literal and warned of.
    public func decompose(_ body: [UInt8], as rule: BodyRule) -> Decomposition { .opaque(nil) }
}
