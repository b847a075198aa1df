import Glibc
import HTTPSemantics
import Synchronization

extension Configuration {
    /// The credential that Larder adds to requests without one.
    package struct Credential: Sendable, Equatable {
        package var header = "Authorization"
        package var source = Source.file("")
        /// The scheme put before its text, with a space: `Bearer`.
        var scheme: String?
        package var writes = false
        /// How long the output of a command is used; nil to use it until the upstream responds with 401.
        package var expires: Duration?
        /// The field's value as it is sent now.
        package let value = CurrentSecret()

        /// Where its text comes from.
        package enum Source: Sendable, Equatable {
            case file(String)
            /// A program with its arguments, which prints it.
            case command([String])
        }

        /// Identifies it while its text changes: its field and its source.
        package var name: String {
            switch source {
            case .file(let path): "\(header): file \(path)"
            case .command(let words): "\(header): command \(words.joined(separator: "\u{0}"))"
            }
        }

        /// Sends this text from now on; throws if a field cannot carry it.
        ///
        /// - Returns: whether it differs from the former one.
        @discardableResult
        package func take(_ output: [UInt8]) throws(InvalidValue) -> Bool {
            var text = output
            while let last = text.last, last == 0x0A || last == 0x0D || last == 0x20 { text.removeLast() }
            if text.isEmpty { throw InvalidValue("is empty; put the credential on its first line") }
            if text.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
                throw InvalidValue("must contain one line without control characters")
            }
            return value.replace(by: scheme.map { Array("\($0) ".utf8) + text } ?? text)
        }

        /// Reads its file; throws if that is no credential, or not Larder's alone.
        ///
        /// - Returns: whether it differs from the former one.
        @discardableResult
        package func read(_ path: String) throws(InvalidValue) -> Bool {
            let bytes = try FileBytes.readSecret(path, called: "the credential")
            do { return try take(bytes) } catch { throw InvalidValue("\"\(path)\" \(error)") }
        }
    }
}

/// A secret that may change while the daemon runs; hidden from logs and errors.
///
/// Any thread.
package final class CurrentSecret: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    private struct State {
        var bytes: [UInt8] = []
        var former: [UInt8]?
        var isRefused = false
    }

    private let state = Mutex(State())

    /// Its bytes now; empty while it is not known.
    package var bytes: [UInt8] { state.withLock(\.bytes) }

    /// Its bytes, and those before its last change, which requests under way may have.
    package var all: [[UInt8]] { state.withLock { [$0.bytes] + ($0.former.map { [$0] } ?? []) } }

    /// Records that the upstream has refused it.
    package func refuse() { state.withLock { $0.isRefused = true } }

    /// Whether the upstream has refused it since this was asked last.
    package func takeRefusal() -> Bool {
        state.withLock { state in
            defer { state.isRefused = false }
            return state.isRefused
        }
    }

    fileprivate func replace(by bytes: [UInt8]) -> Bool {
        state.withLock { state in
            guard state.bytes != bytes else { return false }
            if !state.bytes.isEmpty { state.former = state.bytes }
            state.bytes = bytes
            return true
        }
    }

    package static func == (one: CurrentSecret, other: CurrentSecret) -> Bool { one.bytes == other.bytes }

    package var description: String { "[secret]" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
