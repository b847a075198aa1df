import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store
import Synchronization

/// What is made of the fleet's key: names on the server, which do not show URLs, and keys that seal.
///
/// Any thread. All of it is an HMAC by the fleet's key, which itself is never used for anything else.
struct FleetKeys: Sendable {
    private let key: [UInt8]
    private let documents: [UInt8]
    let newsKey: [UInt8]

    /// - Parameter key: 32 bytes.
    init(_ key: [UInt8]) {
        self.key = key
        documents = Self.derive(key, "larder.document")
        newsKey = Self.derive(key, "larder.news")
    }

    private static func derive(_ key: [UInt8], _ parts: String...) -> [UInt8] {
        derive(key, parts.map { Array($0.utf8) })
    }

    private static func derive(_ key: [UInt8], _ parts: [[UInt8]]) -> [UInt8] {
        var message = ByteWriter()
        for part in parts { message.append(part) }
        return Crypto.authenticationCode(key: key, message: message.bytes)
    }

    /// The secret of the principal key that all machines of a fleet have.
    static func principalSecret(_ key: [UInt8]) -> [UInt8] { derive(key, "larder.principals") }

    /// Identifies the key without revealing it, beside the store.
    var digest: String { Self.derive(key, "larder.digest").prefix(8).hexadecimal }

    // MARK: Names

    /// The beginning of all names of an upstream on the server.
    func name(ofUpstream upstream: UpstreamKey) -> String {
        "larder:" + Self.derive(key, "larder.upstream", upstream.rawValue).prefix(16).hexadecimal
    }

    /// The name of a document within its upstream and epoch.
    func name(of document: SharedKey) -> String {
        let parts = ["larder.name", document.upstream.rawValue, document.context, document.url].map { Array($0.utf8) }
        // Without credentials it is another text than with empty ones.
        let credentials: [[UInt8]] = if let known = document.credentials { [[1], known] } else { [[0]] }
        return Self.derive(key, parts + credentials).prefix(16).hexadecimal
    }

    /// The name of a rate limit within its upstream.
    func name(of limit: SharedLimit) -> String {
        let parts = [
            Array("larder.limit".utf8), Array(limit.upstream.rawValue.utf8), limit.credential, Array(limit.scope.utf8),
        ]
        return Self.derive(key, parts).prefix(16).hexadecimal
    }

    // MARK: Keys

    /// The key that seals a document: of the fleet's key and the client's credentials, so that no other client opens it.
    func key(of document: SharedKey) -> [UInt8] {
        guard let credentials = document.credentials else { return documents }
        return Self.derive(documents, [Array("private".utf8), Array(document.upstream.rawValue.utf8), credentials])
    }
}

/// Seals and opens what is on the server.
///
/// Each process has a random id and counts what it seals. A key is made of the id, so that no nonce is ever used twice with it.
final class Sealer: Sendable {
    /// Identifies this process among those of the fleet: 16 bytes.
    let sender: [UInt8]
    private let count = Atomic<UInt64>(0)

    private static let version: UInt8 = 1
    private static let senderCount = 16
    private static let headCount = 1 + senderCount + 8

    init(sender: [UInt8] = SecretFile.randomBytes(senderCount)) { self.sender = sender }

    /// Seals bytes for a place; at another place they do not open.
    ///
    /// - Parameter place: the name on the server, which contains the epoch.
    func seal(_ bytes: [UInt8], key: [UInt8], place: String) -> [UInt8] {
        var head = ByteWriter()
        head.bytes = [Self.version] + sender
        head.append(count.add(1, ordering: .relaxed).newValue)
        let own = Crypto.authenticationCode(key: key, message: sender)
        let nonce = [0, 0, 0, 0] + head.bytes.suffix(8)
        return head.bytes
            + CryptoSeal.seal(bytes, key: own, nonce: nonce, context: head.bytes + Array(place.utf8))
    }

    /// Opens what any process of the fleet has sealed for a place; nil if it was not.
    func open(_ sealed: [UInt8], key: [UInt8], place: String) -> (bytes: [UInt8], sender: [UInt8])? {
        guard sealed.count > Self.headCount, sealed[0] == Self.version else { return nil }
        let head = Array(sealed.prefix(Self.headCount))
        let sender = Array(head[1...Self.senderCount])
        let bytes = CryptoSeal.open(
            sealed.dropFirst(Self.headCount),
            key: Crypto.authenticationCode(key: key, message: sender),
            nonce: [0, 0, 0, 0] + head.suffix(8),
            context: head + Array(place.utf8)
        )
        return bytes.map { ($0, sender) }
    }
}
