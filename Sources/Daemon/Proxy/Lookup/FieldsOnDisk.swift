import CachePolicy
import HTTPSemantics
import Settings
import Store

/// The fields of a response as they are on disk (law 4).
///
/// Where the upstream repeats a credential of the request, a keyed digest stands in its place, and the next request of the
/// principal gives the credential back. A response with any other secret is not on disk at all. So what is served is always what
/// was received.
enum FieldsOnDisk {
    /// The first byte; no field name begins with it.
    ///
    /// Larder 0.2 wrote fields without it, and `REDACTED` for their secrets.
    private static let version: UInt8 = 1
    /// Before and after a digest; no field value contains it.
    private static let bracket: UInt8 = 0

    /// The fields for disk; nil if they may not be there.
    static func encode(_ fields: Fields, for request: ProxyRequest) -> [UInt8]? {
        encode(fields, for: request, request.credentials)
    }

    /// The same with the request's credentials.
    fileprivate static func encode(_ fields: Fields, for request: ProxyRequest, _ credentials: RequestCredentials)
        -> [UInt8]?
    {
        if request.upstream.areFreeOfSecrets(fields) {
            let encoded = fields.encoded
            if !credentials.areRepeated(in: encoded) { return [version] + encoded }
        }
        var lines: [Field] = []
        for var line in fields.lines {
            guard !line.value.contains(bracket) else { return nil }
            let isKept = request.upstream.settings.cookies == .replay && line.isNamed("set-cookie")
            line.value = withoutCredentials(line, isKept: isKept, credentials, request)
            let holdsSecret = !isKept && request.upstream.principal.holdsSecret(line) { isDigest($0) }
            if holdsSecret || credentials.areRepeated(in: line.value) { return nil }
            lines.append(line)
        }
        let bytes = [version] + Fields(lines).encoded
        guard bytes.contains(bracket) else { return bytes }
        return decode(bytes, for: request, credentials) == fields.encoded ? bytes : nil
    }

    /// The fields as they were received, encoded; nil if they cannot be restored.
    static func decode(_ bytes: [UInt8], for request: ProxyRequest) -> [UInt8]? {
        guard !isEarlier(bytes) else { return decodeEarlier(bytes, for: request) }
        guard bytes.contains(bracket) else { return Array(bytes.dropFirst()) }
        return decode(bytes, for: request, request.credentials)
    }

    private static func decode(_ bytes: [UInt8], for request: ProxyRequest, _ credentials: RequestCredentials)
        -> [UInt8]?
    {
        var known: [[UInt8]: [UInt8]] = [:]
        for credential in credentials.all where credential.isOfPrincipal {
            known[digest(of: credential.bytes, request)] = credential.bytes
        }
        return replacingDigests(in: bytes.dropFirst()) { known[Array($0)] }
    }

    /// The same if nothing of a credential was in them, whoever asked; nil otherwise.
    static func withoutDigests(_ bytes: [UInt8]) -> Fields? {
        isEarlier(bytes) || bytes.contains(bracket) ? nil : Fields(encoded: Array(bytes.dropFirst()))
    }

    /// The same for people, without credentials.
    ///
    /// - Returns: nil for bytes that `encode` cannot have made.
    static func shown(_ bytes: [UInt8]) -> [UInt8]? {
        let fields = isEarlier(bytes) ? bytes[...] : bytes.dropFirst()
        return replacingDigests(in: fields) { _ in PrincipalFields.mark }
    }

    /// Whether Larder 0.2 wrote the fields.
    static func isEarlier(_ bytes: [UInt8]) -> Bool { bytes.first != version }

    /// Fields written by Larder 0.2, if they are those received and may be on disk.
    private static func decodeEarlier(_ bytes: [UInt8], for request: ProxyRequest) -> [UInt8]? {
        let fields = Fields(encoded: bytes)
        let isRedacted = fields.lines.contains { $0.value.firstRange(of: PrincipalFields.mark) != nil }
        return !isRedacted && encode(fields, for: request) == [version] + bytes ? bytes : nil
    }

    // MARK: Digests of credentials

    private static func digest(of credential: [UInt8], _ request: ProxyRequest) -> [UInt8] {
        OtherFields.text(request.credentialHasher.digest(Array("credential ".utf8) + credential))
    }

    /// Whether a text begins with a digest, and ends there or where another value may follow in a list or a path.
    private static func isDigest(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.first == bracket, let end = text.dropFirst().firstIndex(of: bracket) else { return false }
        let rest = text[(end + 1)...]
        return rest.first.map { [0x29, 0x2C, 0x2F].contains($0) } ?? true
    }

    /// A field's value with digests in place of the credentials of the request's principal.
    private static func withoutCredentials(
        _ line: Field,
        isKept: Bool,
        _ credentials: RequestCredentials,
        _ request: ProxyRequest
    ) -> [UInt8] {
        let own = credentials.all.filter(\.isOfPrincipal)
        guard !own.isEmpty else { return line.value }
        func mark(_ credential: [UInt8]) -> [UInt8] { [bracket] + digest(of: credential, request) + [bracket] }
        var value = line.value
        // Short ones are found only where a secret is expected.
        for place in isKept ? [] : request.upstream.principal.secretPlaces(in: line).reversed() {
            let secret = value[place]
            let bare = place.count == value.count ? FieldCredentials.withoutScheme(value) : secret
            for found in [secret, bare] where own.contains(where: { $0.bytes.elementsEqual(found) }) {
                value.replaceSubrange(found.startIndex..<found.endIndex, with: mark(Array(found)))
                break
            }
        }
        for credential in own.filter(\.isLookedFor).sorted(by: { $0.bytes.count > $1.bytes.count }) {
            var start = value.startIndex
            while let found = value[start...].firstRange(of: credential.bytes) {
                let mark = mark(credential.bytes)
                value.replaceSubrange(found, with: mark)
                start = found.lowerBound + mark.count
            }
        }
        return value
    }

    /// Replaces each digest with its brackets; nil if there is nothing for one.
    private static func replacingDigests(
        in bytes: ArraySlice<UInt8>,
        by replacement: (ArraySlice<UInt8>) -> [UInt8]?
    ) -> [UInt8]? {
        var (result, rest): ([UInt8], ArraySlice<UInt8>) = ([], bytes)
        while let open = rest.firstIndex(of: bracket) {
            let text = rest[(open + 1)...]
            guard let close = text.firstIndex(of: bracket), let known = replacement(text[..<close]) else { return nil }
            result += rest[..<open]
            result += known
            rest = rest[(close + 1)...]
        }
        return result + rest
    }
}

/// How much of a response may be on disk (law 4).
enum DiskShare {
    case whole(head: [UInt8])
    /// Its objects, because only its fields hold secrets.
    case objects
    /// Nothing: what it was requested with, or its body, holds secrets.
    case nothing

    init(of response: CachedResponse, to request: ProxyRequest) {
        let credentials = request.credentials
        // The request fields that selected it are stored with it.
        let selecting = response.selection.lines
        if selecting.contains(where: { NameMeaning.isForgeryToken(field: Array($0.name.utf8)) && $0.value != nil })
            || request.upstream.holdSecret(selecting.compactMap(\.value), credentials)
            || request.hasSecretKey(credentials) || credentials.areRepeated(inBody: response.body, response.fields)
        {
            self = .nothing
        } else {
            let head = FieldsOnDisk.encode(response.fields, for: request, credentials)
            self = head.map { .whole(head: $0) } ?? .objects
        }
    }
}

extension ProxyRequest {
    /// Whether its cache key, which is stored, holds a secret: its context, such as a URL with a token in a field named by
    /// `context:`, or a URL within its own.
    func hasSecretKey(_ credentials: RequestCredentials) -> Bool {
        let context = key.context.utf8.split(separator: 0x0A).map { Array($0.drop { $0 != 0x3D }.dropFirst()) }
        if !context.isEmpty, upstream.holdSecret(context, credentials) { return true }
        if credentials.areNone, !key.url.utf8.contains(where: PrincipalFields.mayBeOfSecret) { return false }
        return upstream.holdSecret([Array(key.url.utf8)], credentials)
    }
}

extension ProxiedUpstream {
    /// Whether values of request fields hold secrets in URLs, or are credentials of the request.
    fileprivate func holdSecret(_ values: [[UInt8]], _ credentials: RequestCredentials) -> Bool {
        values.contains { value in
            value.contains(where: PrincipalFields.mayBeOfSecret)
                && principal.holdsSecret(Field(name: [], value: value)) { $0.starts(with: Redaction.mark) }
                || credentials.areRepeated(in: value)
        }
    }
}
