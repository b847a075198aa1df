import Admin
import Foundation
import Logging
import Proxy
import Settings
import Synchronization

/// Keeps the credentials that Larder adds current while the daemon runs (`credential:`), and the secrets of webhooks.
///
/// A file is read again when it changes. A command runs again when its output has expired, or the upstream has responded with
/// 401. While that fails, the former credential is sent. Any thread.
final class CredentialKeeper: Sendable {
    /// Why an upstream's credential cannot be had.
    struct Failure: Error, CustomStringConvertible {
        let upstream: String
        let reason: String

        var description: String { "the credential of upstream \(upstream): \(reason)" }
    }

    private struct Known {
        /// The file as it was read last; nil before.
        var file: FileMark?
        /// When the command ran last, successfully or not.
        var tried = ContinuousClock.now
        var isRunning = false
        /// Whether it has to run again: the upstream has refused its output, or its last run failed.
        var isRefused = false
        /// Whether the log says that the credential is the former one.
        var isReported = false
    }

    static let interval: Duration = .seconds(1)
    /// How long a command may run.
    private static let patience: Duration = .seconds(10)
    /// The least time between two runs of a command.
    private static let pause: Duration = .seconds(10)

    private let core: DaemonCore
    private let log: Logger
    private let known = Mutex<[ObjectIdentifier: Known]>([:])

    init(_ core: DaemonCore, _ log: Logger) { (self.core, self.log) = (core, log) }

    /// Runs the commands of a config, whose output its credentials are; blocks.
    static func obtain(for settings: Configuration) throws(Failure) {
        for upstream in settings.upstreams {
            guard let credential = upstream.credential, case .command(let words) = credential.source else { continue }
            do {
                try run(words, for: credential)
            } catch { throw Failure(upstream: upstream.name, reason: error.description) }
        }
    }

    /// Renews what has to be; returns at once, except for the reading of small files.
    func renew() {
        let upstreams = core.proxy.configuration.value.upstreams.map(\.settings)
        let current = Set(
            upstreams.flatMap { upstream in
                (upstream.credential.map { [ObjectIdentifier($0.value)] } ?? [])
                    + upstream.webhooks.map { ObjectIdentifier($0.secret) }
            }
        )
        known.withLock { known in known = known.filter { current.contains($0.key) } }
        for upstream in upstreams {
            for webhook in upstream.webhooks { renew(webhook) }
        }
        for upstream in upstreams {
            guard let credential = upstream.credential else { continue }
            switch credential.source {
            case .file(let path): renew(credential, of: upstream.name, from: path)
            case .command(let words): renew(credential, of: upstream.name, by: words)
            }
        }
    }

    private func renew(_ credential: Configuration.Credential, of upstream: String, from path: String) {
        let mark = FileMark(path)
        let isNew = change(credential) { known in
            defer { known.file = mark }
            // The first mark is of a file that may have changed since the config was read.
            return known.file != mark
        }
        guard isNew else { return }
        do throws(InvalidValue) {
            succeeded(credential, of: upstream, hasChanged: try credential.read(path))
        } catch { failed(credential, of: upstream, error.description) }
    }

    private func renew(_ credential: Configuration.Credential, of upstream: String, by words: [String]) {
        let isRefused = credential.value.takeRefusal()
        let isDue = change(credential) { known in
            let age = ContinuousClock.now - known.tried
            let isExpired = credential.expires.map { age >= $0 } ?? false
            known.isRefused = known.isRefused || isRefused
            guard !known.isRunning, age >= Self.pause, isExpired || known.isRefused else { return false }
            (known.isRunning, known.tried) = (true, .now)
            return true
        }
        guard isDue else { return }
        Thread.detachNewThread { [self] in
            do throws(InvalidValue) {
                succeeded(credential, of: upstream, hasChanged: try Self.run(words, for: credential))
            } catch { failed(credential, of: upstream, error.description) }
        }
    }

    /// Changes what is known of a credential.
    private func change<Result>(_ credential: Configuration.Credential, _ change: (inout Known) -> Result) -> Result {
        self.change(ObjectIdentifier(credential.value), change)
    }

    private func change<Result>(_ secret: ObjectIdentifier, _ change: (inout Known) -> Result) -> Result {
        known.withLock { change(&$0[secret, default: Known()]) }
    }

    /// Reads the secrets of a webhook again if their file has changed; while that fails, the former ones count.
    private func renew(_ webhook: Configuration.Webhook) {
        let (secret, mark) = (ObjectIdentifier(webhook.secret), FileMark(webhook.file))
        guard
            change(
                secret,
                { known in
                    defer { known.file = mark }
                    return known.file != mark
                }
            )
        else { return }
        var failure: String?
        var hasChanged = false
        do throws(InvalidValue) {
            hasChanged = try webhook.secret.read(webhook.file)
        } catch { failure = error.description }
        let wasReported = change(secret) { known in
            defer { known.isReported = failure != nil }
            return known.isReported
        }
        core.setState { [failure] in $0.staleWebhooks[webhook.name] = failure }
        if let failure {
            guard !wasReported else { return }
            log.error(
                "the secret of a webhook cannot be read again; the former one counts",
                metadata: ["webhook": "\(webhook.name)", "cause": "\(failure)"]
            )
        } else if hasChanged || wasReported {
            log.notice("the secret of a webhook was read again", metadata: ["webhook": "\(webhook.name)"])
        }
    }

    private func succeeded(_ credential: Configuration.Credential, of upstream: String, hasChanged: Bool) {
        let wasReported = change(credential) { known in
            defer { (known.isRunning, known.isRefused, known.isReported) = (false, false, false) }
            return known.isReported
        }
        core.setState { $0.staleCredentials[upstream] = nil }
        if hasChanged || wasReported { log.notice("the credential is renewed", metadata: ["upstream": "\(upstream)"]) }
    }

    private func failed(_ credential: Configuration.Credential, of upstream: String, _ reason: String) {
        let wasReported = change(credential) { known in
            defer { (known.isRunning, known.isRefused, known.isReported) = (false, true, true) }
            return known.isReported
        }
        core.setState { $0.staleCredentials[upstream] = reason }
        guard !wasReported else { return }
        log.error(
            "the credential cannot be renewed; the former one is sent",
            metadata: ["upstream": "\(upstream)", "cause": "\(reason)"]
        )
    }

    @discardableResult
    private static func run(_ words: [String], for credential: Configuration.Credential) throws(InvalidValue) -> Bool {
        let output: [UInt8]
        do {
            output = try ChildProcess.output(of: words, within: patience)
        } catch { throw InvalidValue("\"\(words[0])\": \(error)") }
        do {
            return try credential.take(output)
        } catch { throw InvalidValue("what \"\(words[0])\" prints \(error)") }
    }
}

/// Distinguishes one state of a file from the next, as far as the file system shows it: its content and its permissions.
private struct FileMark: Equatable {
    let device: UInt
    let number: UInt
    let size: Int
    let seconds: Int
    let nanoseconds: Int

    /// Nil if there is no such file.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number, size) = (status.st_dev, status.st_ino, status.st_size)
        // `chmod` changes this time, and not that of the content.
        (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
    }
}
