/// The address under which a client reached Larder, which links lead back to.
package struct ClientAuthority: Sendable, Equatable {
    /// As the client wrote it in `Host`.
    let authority: String

    var bytes: [UInt8] { Array(authority.utf8) }

    /// Whether a request names this authority.
    func isNamed(_ bytes: UnsafeRawBufferPointer?) -> Bool {
        guard let bytes else { return false }
        var text = authority
        return text.withUTF8 { $0.elementsEqual(bytes) }
    }
}
