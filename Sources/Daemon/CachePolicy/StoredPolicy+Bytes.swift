extension StoredPolicy {
    /// Changes with every change of the form; a response stored in another form is asked for again.
    private static let formVersion: UInt8 = 1
    private static let byteCount = 1 + 10 * 8 + 1 + 4

    /// The form kept in the store: a version byte, the numbers as little-endian 64-bit integers in the order of
    /// declaration, the source in one byte, the flags in four.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = [Self.formVersion]
        bytes.reserveCapacity(Self.byteCount)
        for number in [
            status, requestTime, responseTime, date, ageValue, lastModified, initialAge, lifetime,
            staleWhileRevalidate, staleIfError,
        ] {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        bytes.append(lifetimeSource.rawValue)
        withUnsafeBytes(of: flags.rawValue.littleEndian) { bytes += $0 }
        return bytes
    }

    /// Reads what `bytes` gave; nil when it is of another form.
    package init?(bytes: some RandomAccessCollection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount, bytes[0] == Self.formVersion,
            let source = LifetimeSource(rawValue: bytes[81])
        else { return nil }
        func number(_ index: Int) -> Int64 {
            bytes.withUnsafeBytes {
                Int64(littleEndian: $0.loadUnaligned(fromByteOffset: 1 + index * 8, as: Int64.self))
            }
        }
        self.init(requestTime: number(1), responseTime: number(2), date: number(3))
        status = number(0)
        ageValue = number(4)
        lastModified = number(5)
        initialAge = number(6)
        lifetime = number(7)
        staleWhileRevalidate = number(8)
        staleIfError = number(9)
        lifetimeSource = source
        flags = Flags(
            rawValue: bytes.withUnsafeBytes {
                UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 82, as: UInt32.self))
            }
        )
    }
}
