package import CachePolicy
import HTTPSemantics

/// A response stored under a request's key for a request with other selecting fields (RFC 9111 §4.1).
///
/// It cannot be chosen for the request, but the upstream may say that it is what the request asks for.
package struct Variant: Sendable {
    /// The bytes of its `VarySelection`, which name it in the store.
    let selection: [UInt8]
    /// What the upstream may be asked about it by; nil where it may not: without a tag of the upstream's, or because
    /// something newer is known of what it shows.
    let validators: Preconditions.Stored?
}

/// What one request asks the upstream about stored responses, and which of them a 304 to it confirms (RFC 9111 §4.3).
package struct Validation: Sendable {
    /// The response that would be chosen for the request, were it fresh.
    package private(set) var chosen: Preconditions.Stored?
    /// Others that are asked about by their tags, the newest first.
    private(set) var variants: [Variant] = []

    /// Asks about nothing: the upstream is to send the whole.
    static let none = Validation(chosen: nil, variants: [])

    init(chosen: Preconditions.Stored?, variants: [Variant]) {
        self.chosen = chosen
        self.variants = variants.filter { $0.validators?.entityTag != nil }
    }

    /// Asks about what is stored for a request.
    ///
    /// A stored response that shows anything else than what the upstream sent is asked for without conditions, whatever
    /// else is stored: a 304 would confirm bytes that are no longer served.
    package init(_ request: ProxyRequest, stored: ReadyResponse?, variants: [Variant]) {
        let isOfParts = request.isForParts && stored?.isPartial == true && !request.hasConditions
        guard request.asksForItself || isOfParts, stored?.isClean != false,
            stored.map({ $0.response.form == .received && $0.response.doubts.isEmpty }) != false
        else {
            self = .none
            return
        }
        let response = stored?.response
        let isValidatable = response?.isValidatable == true
        self.init(
            chosen: isValidatable ? response.map { Preconditions.Stored(fields: $0.fields, policy: $0.policy) } : nil,
            // The response to a HEAD has no body to be stored under another selection.
            variants: request.isShareable ? variants : []
        )
    }

    package var isEmpty: Bool { chosen == nil && variants.isEmpty }

    /// The fields that the request carries.
    var fields: Fields {
        var fields = Preconditions.validators(of: candidates)
        // A date can be about the chosen one only: another selection may have another representation of the same time.
        if chosen == nil { fields.remove("if-modified-since") }
        return fields
    }

    private var candidates: [Preconditions.Stored] { (chosen.map { [$0] } ?? []) + variants.compactMap(\.validators) }

    /// What a 304 confirms.
    enum Selected {
        case chosen
        case variant(Variant)
    }

    /// Which of the stored responses a 304 confirms; nil where that is not known, and everything has to be asked again.
    func selected(by update: Fields, now: Int64) -> Selected? {
        let found = Freshening.selected(by: update, among: candidates, now: now)
        guard let first = found.first else { return nil }
        if chosen != nil {
            if found.contains(0) { return .chosen }
            return update.contains("etag") ? .variant(variants[first - 1]) : nil
        }
        // Only its tag says that it is of this selection, too.
        return update.contains("etag") ? .variant(variants[first]) : nil
    }
}
