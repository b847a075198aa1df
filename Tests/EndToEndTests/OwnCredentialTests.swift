import Foundation
import TestSupport
import Testing

/// The credential that Larder adds for programs that have none, and that changes while it runs.
@Suite(.scripts) struct OwnCredentialTests {
    /// Responds with 401 unless the token is among the valid ones.
    private func origin(_ valid: Monitor<Set<String>>) throws -> Origin {
        try Origin { request in
            let token = request["Authorization"]?.split(separator: " ").last.map(String.init) ?? ""
            guard valid.current.contains(token) else { return .json(#"{"message":"Bad credentials"}"#, status: 401) }
            return .json(#"{"token":"\#(token)"}"#, Fresh.hour)
        }
    }

    private func config(_ origin: Origin, _ source: String) -> String {
        Configs.plain(origin, upstream: ["credential: { \(source), scheme: Bearer }"])
    }

    @Test func `a credential's file is read again when it changes, and stored responses stay valid`() throws {
        let origin = try origin(Monitor(["one", "two"]))
        let folder = TemporaryFolder()
        let file = try folder.write("one\n", to: "token")
        #expect(chmod(file, 0o600) == 0)
        let larder = try Larder(config: config(origin, "from: \(file)"))
        #expect(try larder.get("/a").text == #"{"token":"one"}"#)

        // As editors and secret managers do: a new file takes the old one's place.
        let next = try folder.write("two\n", to: "next")
        #expect(chmod(next, 0o600) == 0)
        #expect(rename(next, file) == 0)
        #expect(larder.process.waitForErrors { $0.contains("the credential is renewed upstream=api") })
        #expect(try larder.get("/b").text == #"{"token":"two"}"#)
        #expect(try larder.get("/a").isHit)
        #expect(!larder.log.contains("one") && !larder.log.contains("two"))
    }

    @Test func `an unusable credential file changes nothing, and is reported once, also by status`() throws {
        let origin = try origin(Monitor(["one", "two"]))
        let folder = TemporaryFolder()
        let file = try folder.write("one", to: "token")
        #expect(chmod(file, 0o600) == 0)
        let larder = try Larder(config: config(origin, "from: \(file)"))
        for text in ["", "a\nb"] {
            try folder.write(text, to: "token")
            #expect(larder.process.waitForErrors { $0.contains("the credential cannot be renewed") })
            #expect(try larder.get("/\(text.count)").text == #"{"token":"one"}"#)
        }
        let status = try larder.command("status")
        #expect(status.end == .exited(1))
        #expect(status.output.contains("the credential of upstream api is the former one: "), "\(status.output)")
        try folder.write("two", to: "token")
        #expect(larder.process.waitForErrors { $0.contains("the credential is renewed") })
        #expect(try larder.get("/after").text == #"{"token":"two"}"#)
        #expect(try larder.command("status").end == .exited(0))
        #expect(larder.log.components(separatedBy: "cannot be renewed").count == 2)
    }

    @Test func `a credential file is read again once its permissions are corrected`() throws {
        let origin = try origin(Monitor(["one", "two"]))
        let folder = TemporaryFolder()
        let file = try folder.write("one", to: "token")
        #expect(chmod(file, 0o600) == 0)
        let larder = try Larder(config: config(origin, "from: \(file)"))
        let next = try folder.write("two", to: "next")
        #expect(chmod(next, 0o644) == 0 && rename(next, file) == 0)
        #expect(larder.process.waitForErrors { $0.contains("run: chmod o=") })
        #expect(try larder.get("/a").text == #"{"token":"one"}"#)
        #expect(chmod(file, 0o600) == 0)
        #expect(larder.process.waitForErrors { $0.contains("the credential is renewed") })
        #expect(try larder.get("/b").text == #"{"token":"two"}"#)
    }

    @Test func `a command gives the credential, and runs again once the upstream has refused it`() throws {
        let valid = Monitor<Set<String>>(["token-1"])
        let origin = try origin(valid)
        let folder = TemporaryFolder()
        let script = try folder.write(
            "#!/bin/sh\nn=$(cat '\(folder.file("n"))'); n=$((n+1)); echo $n > '\(folder.file("n"))'; echo token-$n\n",
            to: "mint"
        )
        try folder.write("0", to: "n")
        let larder = try Larder(config: config(origin, "command: [sh, '\(script)']"))
        #expect(try larder.get("/a").text == #"{"token":"token-1"}"#)
        valid.withLock { $0 = ["token-2"] }
        #expect(try larder.get("/b").status == 401)
        #expect(larder.process.waitForErrors { $0.contains("the credential is renewed upstream=api") })
        #expect(try larder.get("/c").text == #"{"token":"token-2"}"#)
        #expect(try larder.get("/a").isHit)
        #expect(!larder.log.contains("token-"))
        // A reload runs it, too.
        #expect(try larder.admin("POST", "/reload").status == 200)
        #expect(try String(contentsOfFile: folder.file("n"), encoding: .utf8) == "3\n")
    }

    @Test(arguments: [
        ("[larder-no-such-program]", "cannot be started: No such file or directory"),
        ("[sh, -c, 'echo s3cret; exit 3']", "ended with status 3"),
        ("[sh, -c, 'kill -9 $$']", "signal 9 ended it"),
        ("[printf, 'a\\nb']", "must contain one line"),
        ("['true']", "is empty"),
        ("[head, -c, '100000', /dev/zero]", "prints more than 64 KiB"),
        ("[sleep, '60']", "took longer than 10s"),
        ("[sh, -c, 'echo a; exec sleep 60 >&-']", "took longer than 10s"),
    ])
    func `a command that gives no credential ends the start with its name and the reason`(
        command: String,
        reason: String
    ) throws {
        let origin = try origin(Monitor([]))
        let folder = TemporaryFolder()
        let file = try folder.write(config(origin, "command: \(command)"), to: "larder.yaml")
        let process = try TestProcess(
            Larder.binary,
            ["serve", "--config", file, "--store", folder.file("larder.db"), "--listen", "127.0.0.1:0"],
            environment: Larder.environment
        )
        #expect(process.waitForEnd() == .exited(1))
        #expect(process.errors.contains("the credential of upstream api: ") && process.errors.contains(reason))
        #expect(!process.errors.contains("s3cret"))
    }

    @Test func `the example's script gives a GitHub App's token, whose request is signed with its key`() throws {
        let folder = TemporaryFolder()
        for command in [
            ["genrsa", "-out", folder.file("key.pem"), "2048"],
            ["rsa", "-in", folder.file("key.pem"), "-pubout", "-out", folder.file("public.pem")],
        ] { #expect(try TestProcess("/usr/bin/openssl", command).waitForEnd() == .exited(0)) }
        let origin = try Origin { request in
            let bearer =
                request["Authorization"]?.dropFirst("Bearer ".count).split(separator: ".").map(String.init) ?? []
            guard request.path == "/app/installations/42/access_tokens" else {
                return .json(#"{"is_app":\#(bearer == ["ghs_1"])}"#)
            }
            guard request.method == "POST", bearer.count == 3, let signature = Self.decoded(bearer[2]),
                (try? signature.write(to: URL(fileURLWithPath: folder.file("signature")))) != nil,
                (try? folder.write("\(bearer[0]).\(bearer[1])", to: "signed")) != nil,
                let claims = Self.decoded(bearer[1]).map({ String(decoding: $0, as: UTF8.self) })
            else { return .json("{}", status: 401) }
            let check = try? TestProcess(
                "/usr/bin/openssl",
                [
                    "dgst", "-sha256", "-verify", folder.file("public.pem"), "-signature", folder.file("signature"),
                    folder.file("signed"),
                ]
            )
            guard check?.waitForEnd() == .exited(0), claims.contains(#""iss":"1234""#) else {
                return .json("{}", status: 401)
            }
            return .json("{\n  \"token\": \"ghs_1\",\n  \"expires_at\": \"2040-01-01T00:00:00Z\"\n}", status: 201)
        }
        let larder = try Larder(
            config: config(origin, "command: ['\(Repository.root)/Examples/github-app/installation-token']"),
            environment: [
                "GITHUB_APP_ID": "1234", "GITHUB_INSTALLATION_ID": "42", "GITHUB_APP_KEY": folder.file("key.pem"),
                "GITHUB_API": origin.url,
            ]
        )
        #expect(try larder.get("/repos").text == #"{"is_app":true}"#)
    }

    /// The bytes of base64url (RFC 4648 §5).
    private static func decoded(_ text: String) -> Data? {
        let plain = text.replacing("-", with: "+").replacing("_", with: "/")
        return Data(base64Encoded: plain + String(repeating: "=", count: (4 - plain.count % 4) % 4))
    }

    @Test func `a check of the config runs no command`() throws {
        let origin = try origin(Monitor([]))
        let folder = TemporaryFolder()
        let file = try folder.write(config(origin, "command: [touch, '\(folder.file("ran"))']"), to: "larder.yaml")
        let process = try TestProcess(Larder.binary, ["check", "--config", file], environment: Larder.environment)
        #expect(process.waitForEnd() == .exited(0), "\(process.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.file("ran")))
    }
}
