import Admin
import Basics
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
    private static let patience: Duration = .seconds(10)
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
        // The first mark is of a file that may have changed since the config was read.
        guard isNew(ObjectIdentifier(credential.value), FileMark(path)) else { return }
        renew(credential, of: upstream) { () throws(InvalidValue) in try credential.read(path) }
    }

    private func renew(_ credential: Configuration.Credential, of upstream: String, by words: [String]) {
        let isRefused = credential.value.takeRefusal()
        let isDue = change(ObjectIdentifier(credential.value)) { known in
            let age = ContinuousClock.now - known.tried
            let isExpired = credential.expires.map { age >= $0 } ?? false
            known.isRefused = known.isRefused || isRefused
            guard !known.isRunning, age >= Self.pause, isExpired || known.isRefused else { return false }
            (known.isRunning, known.tried) = (true, .now)
            return true
        }
        guard isDue else { return }
        Thread.detachNewThread { [self] in
            renew(credential, of: upstream) { () throws(InvalidValue) in try Self.run(words, for: credential) }
        }
    }

    private func change<Result>(_ secret: ObjectIdentifier, _ change: (inout Known) -> Result) -> Result {
        known.withLock { change(&$0[secret, default: Known()]) }
    }

    /// Reads the secrets of a webhook again if their file has changed; while that fails, the former ones count.
    private func renew(_ webhook: Configuration.Webhook) {
        let (secret, mark) = (ObjectIdentifier(webhook.secret), FileMark(webhook.file))
        guard isNew(secret, mark) else { return }
        let (failure, isNews) = noting(secret) { () throws(InvalidValue) in try webhook.secret.read(webhook.file) }
        core.setState { $0.staleWebhooks[webhook.name] = failure }
        guard isNews else { return }
        var metadata: Logger.Metadata = ["webhook": "\(webhook.name)"]
        guard let failure else { return log.notice("the secret of a webhook was read again", metadata: metadata) }
        metadata["cause"] = "\(failure)"
        log.error("the secret of a webhook cannot be read again; the former one counts", metadata: metadata)
    }

    private func renew(
        _ credential: Configuration.Credential,
        of upstream: String,
        _ read: () throws(InvalidValue) -> Bool
    ) {
        let (failure, isNews) = noting(ObjectIdentifier(credential.value), read)
        core.setState { $0.staleCredentials[upstream] = failure }
        guard isNews else { return }
        var metadata: Logger.Metadata = ["upstream": "\(upstream)"]
        guard let failure else { return log.notice("the credential is renewed", metadata: metadata) }
        metadata["cause"] = "\(failure)"
        log.error("the credential cannot be renewed; the former one is sent", metadata: metadata)
    }

    /// Reads a secret again; returns why that failed, and whether the log has to say how it went.
    private func noting(_ secret: ObjectIdentifier, _ read: () throws(InvalidValue) -> Bool) -> (String?, isNews: Bool)
    {
        var (failure, hasChanged): (String?, Bool) = (nil, false)
        do throws(InvalidValue) { hasChanged = try read() } catch { failure = error.description }
        let hasFailed = failure != nil
        let wasReported = change(secret) { known in
            defer { (known.isRunning, known.isRefused, known.isReported) = (false, hasFailed, hasFailed) }
            return known.isReported
        }
        return (failure, hasFailed ? !wasReported : hasChanged || wasReported)
    }

    private func isNew(_ secret: ObjectIdentifier, _ mark: FileMark?) -> Bool {
        change(secret) { known in
            defer { known.file = mark }
            return known.file != mark
        }
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

    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number, size) = (status.st_dev, status.st_ino, status.st_size)
        // `chmod` changes this time, and not that of the content.
        (seconds, nanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
    }
}
