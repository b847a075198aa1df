import CCrypto

/// AES-256-GCM by OpenSSL (NIST SP 800-38D); the only file of this room that imports it.
enum CryptoSeal {
    static let tagCount = 16

    /// Encrypts bytes, and authenticates them together with `context`.
    ///
    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes, another one for each call with this key.
    /// - Returns: the encrypted bytes, then the tag.
    static func seal(_ bytes: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]) -> [UInt8] {
        precondition(key.count == 32 && nonce.count == 12, "AES-256-GCM takes a key of 32 bytes and a nonce of 12")
        let cipher = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(cipher) }
        var sealed = [UInt8](repeating: 0, count: bytes.count + tagCount)
        var count: Int32 = 0
        let isDone = sealed.withUnsafeMutableBufferPointer { sealed in
            let tag = sealed.baseAddress! + bytes.count
            return EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, nonce) == 1
                && EVP_EncryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
                && EVP_EncryptUpdate(cipher, sealed.baseAddress, &count, bytes, Int32(bytes.count)) == 1
                && EVP_EncryptFinal_ex(cipher, tag, &count) == 1
                && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, Int32(tagCount), tag) == 1
        }
        // It fails only if memory runs out or the library lacks AES.
        precondition(isDone, "OpenSSL could not encrypt")
        return sealed
    }

    /// Decrypts what `seal` has made; nil if the key, the nonce or the context is another one, or a bit has changed.
    static func open(_ sealed: some Collection<UInt8>, key: [UInt8], nonce: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard sealed.count >= tagCount else { return nil }
        let cipher = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(cipher) }
        var tag = Array(sealed.suffix(tagCount))
        let bytes = Array(sealed.dropLast(tagCount))
        // One more, so that there is an address if it is empty.
        var opened = [UInt8](repeating: 0, count: bytes.count + 1)
        var count: Int32 = 0
        var end = [UInt8](repeating: 0, count: tagCount)
        var rest: Int32 = 0
        guard EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, nonce) == 1,
            EVP_DecryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1,
            EVP_DecryptUpdate(cipher, &opened, &count, bytes, Int32(bytes.count)) == 1,
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(tagCount), &tag) == 1,
            EVP_DecryptFinal_ex(cipher, &end, &rest) == 1
        else { return nil }
        return Array(opened.prefix(bytes.count))
    }
}
