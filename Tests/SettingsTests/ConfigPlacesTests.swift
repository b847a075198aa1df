import Foundation
import Testing

@testable import Settings

/// A folder that is gone when the test is.
private final class ConfigFolder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/larder-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file, folders and all, and gives its path.
    @discardableResult
    func write(_ name: String, _ text: String = "", mode: Int = 0o644) throws -> String {
        let file = "\(path)/\(name)"
        try FileManager.default.createDirectory(
            atPath: String(file[..<file.lastIndex(of: "/")!]),
            withIntermediateDirectories: true
        )
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }
}

struct ConfigPlacesTests {
    @Test func `the store is in the service's state folder, or else in the user's cache folder`() {
        #expect(Defaults(environment: ["STATE_DIRECTORY": "/s:/t", "HOME": "/h"]).storePath == "/s/larder.db")
        #expect(Defaults(environment: ["XDG_CACHE_HOME": "/c", "HOME": "/h"]).storePath == "/c/larder/larder.db")
        #expect(Defaults(environment: ["XDG_CACHE_HOME": "c", "HOME": "/h"]).storePath == "/h/.cache/larder/larder.db")
        #expect(Defaults(environment: [:]).storePath == nil)
    }

    @Test func `a preset is found beside the program, after the user's own presets`() throws {
        let folder = try ConfigFolder()
        let installed = try folder.write("usr/share/larder/github.yaml")
        let executable = "\(folder.path)/usr/bin/larder"
        let environment = ["HOME": "\(folder.path)/home"]
        #expect(try Preset.find("github", environment: environment, executable: executable).path == installed)
        let own = try folder.write("home/.config/larder/github.yaml")
        #expect(try Preset.find("github", environment: environment, executable: executable).path == own)
    }

    @Test func `a program that was just built finds the presets of its source`() throws {
        let folder = try ConfigFolder()
        let source = try folder.write("src/config/github.yaml")
        let executable = "\(folder.path)/src/.build/x86_64-unknown-linux-gnu/debug/larder"
        #expect(try Preset.find("github", environment: [:], executable: executable).path == source)
    }

    @Test func `an unknown preset is reported with the known ones`() throws {
        let folder = try ConfigFolder()
        try folder.write("share/larder/github.yaml")
        try folder.write("share/larder/larder.yaml")
        let error = #expect(throws: PresetError.self) {
            try Preset.find("gitub", environment: [:], executable: "\(folder.path)/bin/larder")
        }
        #expect(
            error?.description
                == "there is no preset \"gitub\" in /etc/larder, \(folder.path)/share/larder. Did you mean \"github\"?"
        )
        #expect(throws: PresetError.self) {
            try Preset.find("../github", environment: [:], executable: "\(folder.path)/bin/larder")
        }
    }

    @Test func `a credential is read from its file, without its line's end`() throws {
        let folder = try ConfigFolder()
        let path = try folder.write("token", "s3cret\n", mode: 0o600)
        let yaml = """
            listen: "unix:\(folder.path)/l"
            upstreams: { a: { url: "https://a.example", credential: { from: "${DIR}/token", scheme: Bearer, writes: true } } }
            """
        let file = ConfigFile.parse(yaml, file: "x", environment: ["DIR": folder.path])
        let credential = try #require(try file.checked().settings.upstreams[0].credential)
        #expect(credential.value.bytes == Array("Bearer s3cret".utf8))
        #expect(credential.source == .file(path))
        #expect(credential.writes)
        #expect(file.diagnostics.isEmpty)
        #expect(!"\(credential)".contains("s3cret"))
    }

    @Test func `a credential that others may read, or that is not one line, is refused`() throws {
        let folder = try ConfigFolder()
        for (mode, text, message) in [
            (
                0o644, "x",
                "every user of this machine may read \"\(folder.path)/token\"; run: chmod o= \"\(folder.path)/token\""
            ),
            (0o600, "", "\"\(folder.path)/token\" is empty; put the credential on its first line"),
            (
                0o600, "a\nb",
                "\"\(folder.path)/token\" must contain one line without control characters"
            ),
        ] {
            try folder.write("token", text, mode: mode)
            let yaml = """
                listen: "unix:/l"
                upstreams: { a: { url: "https://a.example", credential: { from: "\(folder.path)/token" } } }
                """
            let found = ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics
            #expect(found.map(\.message) == ["upstreams.a.credential.from: \(message)"])
        }
    }

    @Test(arguments: [
        (
            "{ scheme: Bearer }",
            "credential: \"from\" is missing; add it, for example `from: \"${CREDENTIALS_DIRECTORY}/github\"`, or \"command\" in its place"
        ),
        ("{ from: /dev/null, command: [a] }", "credential: \"from\" and \"command\" are two sources; remove one"),
        ("{ command: [] }", "credential.command: there is no program; write it with its arguments: [gh, auth, token]"),
    ])
    func `a credential has one source`(credential: String, message: String) {
        let yaml =
            "listen: 'unix:/l'\nupstreams: { a: { url: 'https://a.example', credential: \(credential) } }"
        let found = ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics.filter { $0.severity == .error }
        #expect(found.map(\.message) == ["upstreams.a.\(message)"])
    }

    @Test func `a missing credential file is refused with the system's message`() {
        let yaml =
            "listen: 'unix:/l'\nupstreams: { a: { url: 'https://a.example', credential: { from: /nonexistent } } }"
        #expect(
            ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics.map(\.message) == [
                "upstreams.a.credential.from: the credential cannot be read: /nonexistent: No such file or directory"
            ]
        )
    }

    @Test func `a credential that every program on the machine can use gives a warning`() throws {
        let folder = try ConfigFolder()
        try folder.write("token", "x", mode: 0o600)
        func warnings(_ listen: String, _ url: String, _ writes: Bool) -> [String] {
            let yaml = """
                listen: "\(listen)"
                upstreams: { a: { url: "\(url)", credential: { from: "\(folder.path)/token", writes: \(writes) } } }
                """
            let diagnostics = ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics
            #expect(diagnostics.allSatisfy { $0.severity == .warning })
            return diagnostics.map(\.message)
        }
        let advice = "listen on a Unix socket with a mode and a group to choose who may"
        #expect(
            warnings("127.0.0.1:1", "https://a.example", false) == [
                "every user and program of this machine reads with this credential, through 127.0.0.1:1; \(advice)"
            ]
        )
        #expect(
            warnings("0.0.0.0:1", "https://a.example", true) == [
                "0.0.0.0:1 can be reached from other machines, unencrypted and without a password; keep it to 127.0.0.1 or a Unix socket",
                "everybody who can reach 0.0.0.0:1 reads and writes with this credential, through 0.0.0.0:1; \(advice)",
            ]
        )
        #expect(
            warnings("unix:/l", "http://a.example", false) == [
                "the credential crosses the network unencrypted; use an https URL"
            ]
        )
        #expect(warnings("unix:/l", "http://127.0.0.1:9", false).isEmpty)
    }

    @Test func `an address at the top where no upstream is served gives a warning`() {
        func warnings(_ top: String, _ other: String) -> [Diagnostic] {
            let yaml = """
                \(top)
                upstreams:
                  a: { url: https://a.example, listen: 127.0.0.1:2 }
                  b: { url: https://b.example\(other) }
                """
            return ConfigFile.parse(yaml, file: "x", environment: [:]).diagnostics
        }
        let found = warnings("listen: 127.0.0.1:1", ", listen: 127.0.0.1:3")
        #expect(found.map(\.severity) == [.warning] && found.first?.place == Place(line: 1, column: 9), "\(found)")
        #expect(found.first?.message.contains("no upstream is served here") == true)
        #expect(warnings("listen: 127.0.0.1:1", "").isEmpty)
        #expect(warnings("workers: 2", ", listen: 127.0.0.1:3").isEmpty)
    }

    @Test func `an unreadable config is reported with the reason`() throws {
        let folder = try ConfigFolder()
        #expect(
            ConfigFile.read(folder.path, environment: [:]).diagnostics.map(\.message)
                == ["the file cannot be read: Is a directory"]
        )
        try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: "\(folder.path)/x"))
        #expect(
            ConfigFile.read("\(folder.path)/x", environment: [:]).diagnostics.map(\.message)
                == ["the file is not UTF-8 text; save it as UTF-8"]
        )
    }
}
