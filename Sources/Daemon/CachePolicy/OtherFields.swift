package import HTTPSemantics

/// A digest of the request fields that are neither in the cache key nor known to be harmless (`FieldRole`).
///
/// A response that is `private`, or must be revalidated, only serves requests that agree in these fields. It is stored and
/// shared as if `Vary` named them all. The digest is added to the request as a field of Larder's own, which never goes
/// upstream. It is keyed with a secret outside the store, because one of the fields may be an unrecognised credential.
package enum OtherFields {
    /// The name of the field that holds the digest in a selection, in lower case.
    package static let name = "larder-other-fields"
}

extension VarySelection {
    /// Whether the response only serves requests that agree in their `OtherFields`.
    package var isForAgreeing: Bool { lines.contains { $0.name == OtherFields.name } }

    /// Whether a request has the same `OtherFields`, if the selection includes them.
    package func agrees(with request: Fields) -> Bool {
        lines.allSatisfy { $0.name != OtherFields.name || $0.value == request.combinedBytes(OtherFields.name) }
    }
}
