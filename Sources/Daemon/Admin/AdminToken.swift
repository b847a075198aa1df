import FoundationEssentials
import Glibc
import HTTPSemantics
import Proxy
package import Settings
import Synchronization

/// The secret for the admin side over TCP, kept in `admin.token` beside the store; any thread.
package final class AdminToken: Sendable {
    static let fileName = "admin.token"
    /// The challenge in a response that refuses a request without the token (RFC 6750 §3).
    package static let challenge = "Bearer realm=\"larder\""

    /// The token, and a second one that counts as much.
    private let accepted: Mutex<(own: [UInt8], other: [UInt8]?)>
    private let path: String?

    /// For programs that the daemon itself starts.
    package var string: String { String(decoding: accepted.withLock(\.own), as: UTF8.self) }

    init(_ text: String, from path: String? = nil) {
        accepted = Mutex((own: Array(text.utf8), other: nil))
        self.path = path
    }

    /// Accepts a second one that its environment gives the daemon, for a store that does not last.
    func accept(_ other: String) throws(SecretFileError) {
        guard Self.isValid(other.utf8) else {
            throw SecretFileError(
                "LARDER_ADMIN_TOKEN must have 16 to 512 characters A-Z a-z 0-9 - . _ ~ + / =; `openssl rand -hex 24` makes one"
            )
        }
        accepted.withLock { $0.other = Array(other.utf8) }
    }

    /// Reads its file again; returns whether that contains another token now, which replaces the former one.
    ///
    /// Without a file the former one stays. It also stays if this throws, because others may read the file, or it has no token.
    func renew() throws(SecretFileError) -> Bool {
        guard let path, let found = try Self.read(path), found.text != string else { return false }
        guard found.mode & 0o077 == 0 else {
            throw SecretFileError("other users may read the admin token \(path): chmod 600 '\(path)'")
        }
        accepted.withLock { $0.own = Array(found.text.utf8) }
        return true
    }

    /// Whether `presented` is the token; takes the same time wherever they differ.
    func matches(_ presented: some Collection<UInt8>) -> Bool {
        let (presented, accepted) = (Array(presented), accepted.withLock { $0 })
        return Crypto.areEqual(presented, accepted.own)
            || accepted.other.map { Crypto.areEqual(presented, $0) } ?? false
    }

    /// Whether the value of an `Authorization` field contains the token as a bearer (RFC 6750 §2.1).
    func authorizes(_ field: some Collection<UInt8>) -> Bool { Self.bearer(field).map { matches($0) } ?? false }

    /// The bearer token in the value of an `Authorization` field; nil if it has another scheme.
    static func bearer<Value: Collection<UInt8>>(_ field: Value) -> Value.SubSequence? {
        let scheme = field.prefix(while: { $0 != 0x20 })
        guard scheme.elementsEqual("bearer".utf8, by: { asciiLowercased($0) == $1 }) else { return nil }
        return field.dropFirst(scheme.count).drop(while: { $0 == 0x20 })
    }

    enum Origin: Sendable, Equatable {
        case found
        case made
        /// Others could read the old one, so it was replaced.
        case replaced(mode: UInt32)
    }

    /// The path of the token for the store at `storePath`.
    package static func path(besideStore store: String) -> String { pathBeside(store, fileName) }

    /// Reads the token for the daemon; creates it at the first start.
    ///
    /// A token that its group or others may read is replaced, so that anyone who has read it loses access. One that belongs to
    /// another user, or is not a plain file, is refused.
    static func prepare(at path: String) throws(SecretFileError) -> (token: AdminToken, origin: Origin) {
        guard let found = try read(path) else {
            // Another process may have created it in between; then that one is read.
            _ = try create(at: path, replacing: false)
            guard let made = try read(path) else { throw error(.system(operation: "read", code: ENOENT), path) }
            return (AdminToken(made.text, from: path), .made)
        }
        if found.mode & 0o077 == 0 { return (AdminToken(found.text, from: path), .found) }
        return (AdminToken(try create(at: path, replacing: true), from: path), .replaced(mode: found.mode))
    }

    /// Reads the token's text for a command; nil if there is none yet.
    package static func load(from path: String) throws(SecretFileError) -> String? { try read(path)?.text }

    private static func read(_ path: String) throws(SecretFileError) -> (text: String, mode: UInt32)? {
        let content: FileBytes.Content?
        do throws(SecretFile.Failure) {
            content = try SecretFile.read(path)
        } catch { throw self.error(error, path) }
        guard let content else { return nil }
        guard content.owner == geteuid() || geteuid() == 0 else {
            throw SecretFileError(
                "the admin token \(path) belongs to user \(content.owner), not to the user that runs Larder: remove it or give it to that user"
            )
        }
        var text = content.bytes[...]
        while let last = text.last, last == 0x0A || last == 0x0D || last == 0x20 { text.removeLast() }
        guard isValid(text) else { throw malformed(path) }
        return (String(decoding: text, as: UTF8.self), content.mode)
    }

    private static func create(at path: String, replacing: Bool) throws(SecretFileError) -> String {
        let text = random()
        do throws(SecretFile.Failure) {
            try SecretFile.write(Array((text + "\n").utf8), to: path, replacing: replacing)
        } catch { throw self.error(error, path) }
        return text
    }

    private static let remedy = "remove it, and Larder makes a new one"

    private static func malformed(_ path: String) -> SecretFileError {
        SecretFileError(
            "the admin token \(path) must contain one line of 16 to 512 characters A-Z a-z 0-9 - . _ ~ + / =: \(remedy)"
        )
    }

    private static func error(_ failure: SecretFile.Failure, _ path: String) -> SecretFileError {
        switch failure {
        case .notAFile: SecretFileError("the admin token \(path) is not a plain file: \(remedy)")
        case .tooLarge: malformed(path)
        case .system(let operation, let code):
            SecretFileError("cannot \(operation) the admin token \(path): \(systemMessage(code))")
        }
    }

    private static func isValid(_ text: some Collection<UInt8>) -> Bool {
        (16...512).contains(text.count) && text.allSatisfy(isTokenCharacter)
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-._~+/=".utf8.contains(byte)
        }
    }

    /// 32 random bytes in base64url without padding (RFC 4648 §5).
    static func random() -> String {
        Data(SecretFile.randomBytes(32)).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
