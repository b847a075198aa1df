/// The bytes in gzip's format, not made any smaller.
func gzipStored(_ bytes: [UInt8]) -> [UInt8] {
    func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }
    var checksum: UInt32 = 0xffff_ffff
    for byte in bytes {
        checksum ^= UInt32(byte)
        for _ in 0..<8 { checksum = checksum & 1 == 1 ? (checksum >> 1) ^ 0xedb8_8320 : checksum >> 1 }
    }
    let length = UInt16(bytes.count)
    return [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1] + little(length) + little(~length) + bytes + little(~checksum)
        + little(UInt32(bytes.count))
}
