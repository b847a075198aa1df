import Foundation
import HTTPSemantics
import Proxy
import Settings

/// The mode that was set while the daemon ran, in a file beside the store: it survives a restart.
///
/// It is kept with the mode that the config had then. It holds until the config says something else, so that neither a change of
/// the config nor one at run time is lost.
struct RememberedMode: Sendable {
    private let path: String

    init(besideStore store: String) { path = store + ".mode" }

    /// The mode that holds, of what the config says and what was set; what does not hold any more is forgotten.
    func mode(configured: Mode) -> Mode {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return configured }
        let words = text.split(whereSeparator: \.isWhitespace).map(String.init)
        guard words.count == 2, words[1] == configured.rawValue, let mode = Mode(rawValue: words[0]) else {
            try? remember(configured, configured: configured)
            return configured
        }
        return mode
    }

    func remember(_ mode: Mode, configured: Mode) throws {
        guard mode != configured else {
            guard unlink(path) == 0 || errno == ENOENT else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            return
        }
        let text = "\(mode.rawValue) \(configured.rawValue)\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }
}

extension DaemonCore {
    /// Changes the mode at run time, until it is changed again or the config says something else.
    func setMode(_ mode: Mode) throws {
        modes.set(mode)
        do {
            try rememberedMode?.remember(mode, configured: settings.mode)
        } catch {
            let reason = (error as? POSIXError)?.localizedDescription ?? "\(error)"
            throw ProblemDocument(500, "the mode is \(mode.rawValue) now, but a restart will undo that: \(reason)")
        }
    }
}
