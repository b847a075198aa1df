/// The fields of a request that are neither in the key nor known to be harmless, as one digest.
///
/// A response that its upstream marks `private`, or that must be revalidated, is for requests alone that agree in them: it is
/// stored and shared as if `Vary` named them all. The digest stands in the request as a field of Larder's own, which never
/// goes upstream; it is made under a secret outside of the store, since one of them may be a credential that nobody
/// recognised.
package enum OtherFields {
    /// The name of the field that stands for them in a selection, in lower case.
    package static let name = "larder-other-fields"
}
