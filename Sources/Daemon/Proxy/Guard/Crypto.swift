import CCrypto

/// OpenSSL's digests, message authentication and Base64; the only file of this room that imports it.
package enum Crypto {
    /// HMAC-SHA-256 (RFC 2104): 32 bytes; any thread.
    package static func authenticationCode(key: [UInt8], message: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        let result = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count)
        // It fails only if memory runs out or the library lacks SHA-256.
        precondition(result != nil && count == 32, "OpenSSL could not compute HMAC-SHA-256")
        return code
    }

    /// SHA-256 of these bytes, one after the other: 32 bytes; any thread.
    static func sha256(_ parts: [[UInt8]]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var isDone = EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1
        for part in parts { isDone = isDone && EVP_DigestUpdate(context, part, part.count) == 1 }
        isDone = isDone && EVP_DigestFinal_ex(context, &digest, nil) == 1
        // It fails only if memory runs out or the library lacks SHA-256.
        precondition(isDone, "OpenSSL could not compute SHA-256")
        return digest
    }

    /// Base64 with padding (RFC 4648 §4).
    static func base64(_ bytes: [UInt8]) -> [UInt8] {
        // The library also writes a NUL at the end.
        var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        EVP_EncodeBlock(&text, bytes, Int32(bytes.count))
        return text.dropLast()
    }

    /// Whether both are equal, in a time that does not depend on where they differ.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return zip(left, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
