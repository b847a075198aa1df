import Settings

/// The secret that turns credentials into principals: 32 bytes in a file that only its owner may read (law 4).
package struct PrincipalKey: Sendable {
    private let secret: [UInt8]

    /// A key for tests and in-memory stores.
    init(secret: [UInt8]) {
        precondition(secret.count == Self.byteCount, "a principal key has 32 bytes")
        self.secret = secret
    }

    static let byteCount = 32

    /// The digest that identifies the principal with this canonical text in the store.
    func digest(of canonical: [UInt8]) -> [UInt8] {
        Crypto.authenticationCode(key: secret, message: canonical)
    }

    /// Reads the key, or creates one if there is no file yet.
    ///
    /// Blocks on the disk; call it at start.
    package static func open(path: String) throws(PrincipalKeyError) -> PrincipalKey {
        if let key = try load(path) { return key }
        guard let secret = Crypto.randomBytes(byteCount) else {
            throw .unwritable(path: path, reason: "the system gave no random bytes")
        }
        do throws(SecretFile.Failure) {
            // If another process is faster, its key is used.
            try SecretFile.write(secret, to: path, replacing: false)
        } catch {
            throw .unwritable(path: path, reason: reason(error))
        }
        guard let key = try load(path) else { throw .unreadable(path: path, reason: "it vanished while being made") }
        return key
    }

    private static func load(_ path: String) throws(PrincipalKeyError) -> PrincipalKey? {
        let content: SecretFile.Content?
        do throws(SecretFile.Failure) {
            content = try SecretFile.read(path, limit: byteCount + 1)
        } catch {
            throw .unreadable(path: path, reason: reason(error))
        }
        guard let content else { return nil }
        guard content.mode & 0o077 == 0 else { throw .open(path: path, mode: String(content.mode, radix: 8)) }
        guard content.bytes.count == byteCount else { throw .malformed(path: path, count: content.bytes.count) }
        return PrincipalKey(secret: content.bytes)
    }

    private static func reason(_ failure: SecretFile.Failure) -> String {
        switch failure {
        case .notAFile: "it is not a regular file"
        case .system(_, let code): systemMessage(code)
        }
    }
}

/// Why the key file cannot be used.
package enum PrincipalKeyError: Error, Sendable, Equatable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// Users other than its owner may read or write it.
    case open(path: String, mode: String)
    case malformed(path: String, count: Int)
    case unwritable(path: String, reason: String)

    /// The problem and its remedy.
    package var description: String {
        switch self {
        case .unreadable(let path, let reason):
            "the principal key \(path) cannot be read: \(reason)"
        case .open(let path, let mode):
            "the principal key \(path) has mode \(mode), so that others may read it; run: chmod 600 \(path)"
        case .malformed(let path, let count):
            "the principal key \(path) has \(count) bytes where 32 are wanted; move it away together with the store: "
                + "without its key, what is stored belongs to nobody"
        case .unwritable(let path, let reason):
            "the principal key \(path) cannot be made: \(reason)"
        }
    }
}
