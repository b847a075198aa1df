import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings

/// What the shared reading (`shared: true`) asks of a request beside its key, in which `Authorization` takes no part.
extension Demand {
    /// Whether it may wait for the response to another request of the same key.
    ///
    /// Whether a response is for all is known only once it is here, so until then credentials are kept apart (RFC 9111 §3.5).
    func mayShare(with other: Demand) -> Bool {
        !upstream.settings.shared
            || request.fields.all("authorization") == other.request.fields.all("authorization")
    }

    /// Whether the objects in a response to this request may be shown to everyone of its principal.
    ///
    /// In the private reading it may. In the shared one only what a shared cache might store.
    func mayBeTold(_ fields: Fields) -> Bool {
        let settings = upstream.policySettings
        guard settings.isShared else { return true }
        let directives =
            TargetedDirectives.find(in: fields, targets: settings.targets)?.directives
            ?? ResponseDirectives(lines: fields.all("cache-control"))
        if directives.isPrivate || directives.noStore { return false }
        let isAuthorized = request.fields.contains("authorization") || settings.addsCredential
        return !isAuthorized || directives.permitsAuthorization
    }
}
