import HTTPSemantics
import Mapping
import Settings

/// What the services differ in besides their signatures.
extension Configuration.Webhook.Signature {
    /// The field that has the signature.
    var field: String {
        switch self {
        case .github: "X-Hub-Signature-256"
        case .gitlab: "X-Gitlab-Token"
        case .stripe: "Stripe-Signature"
        }
    }

    /// How long the service may send a delivery again, by itself or because somebody asks for it.
    var repeatable: Duration {
        switch self {
        case .github: .seconds(3 * 86_400)
        case .gitlab: .seconds(7 * 86_400)
        case .stripe: .seconds(30 * 86_400)
        }
    }

    /// What the delivery is called each time that it is sent; nil if it does not say.
    func id(_ fields: Fields, _ payload: JSONOutline) -> String? {
        switch self {
        case .github: fields.text("x-github-delivery")
        // X-Gitlab-Event-UUID is the same for deliveries that others have caused.
        case .gitlab: fields.text("idempotency-key")
        case .stripe: payload["id"]?.text
        }
    }

    /// The name of the event; nil if the delivery does not say.
    func event(_ fields: Fields, _ payload: JSONOutline) -> String? {
        switch self {
        case .github: fields.text("x-github-event")
        case .gitlab: fields.text("x-gitlab-event")
        case .stripe: payload["type"]?.text
        }
    }

    /// Whether a payload says that its object was deleted, so that what it shows of that is over.
    func isDeletion(_ payload: JSONOutline) -> Bool {
        switch self {
        case .github: payload["action"]?.text == "deleted"
        case .gitlab: ["delete", "destroy"].contains(payload["object_attributes"]?["action"]?.text)
        case .stripe: payload["type"]?.text?.hasSuffix(".deleted") ?? false
        }
    }
}
