import Glibc
import Settings
import TestSupport
import DaemonTestSupport
import Testing

@testable import Proxy

@Suite struct PrincipalFieldsTests {
    private func canonical(_ lines: [(String, String)], query: String? = nil) -> [UInt8]? {
        PrincipalFields().canonical(target: bytes("/x" + (query.map { "?\($0)" } ?? "")), fields: fields(lines))
    }

    @Test func `a request without credentials is anonymous`() {
        #expect(canonical([]) == nil)
        #expect(canonical([("Accept", "x")], query: "page=2&access_tokenx=1") == nil)
    }

    @Test(arguments: [
        [("Authorization", "a")], [("Cookie", "a")], [("private-token", "a")], [("X-Api-Key", "a")],
        [("Stripe-Account", "a")],
        [("Authorization", "")],
    ])
    func `each of the default fields identifies a principal`(_ lines: [(String, String)]) {
        #expect(canonical(lines) != nil)
    }

    @Test func `the same credentials are the same principal in any order and case of names`() {
        let first = canonical([("AUTHORIZATION", "a"), ("Cookie", "b")], query: "access_token=c&page=1")
        let second = canonical([("cookie", "b"), ("Authorization", "a")], query: "page=2&ACCESS%5Ftoken=c")
        #expect(first == second)
    }

    @Test func `with shared, Authorization does not divide principals, and stays secret`() {
        let shared = PrincipalFields(isShared: true)
        #expect(shared.canonical(target: [], fields: fields([("Authorization", "a")])) == nil)
        #expect(
            shared.canonical(target: [], fields: fields([("Authorization", "a"), ("Cookie", "b")]))
                == canonical([("Cookie", "b")])
        )
        #expect(shared.redacted(fields([("Authorization", "a")])) == fields([("Authorization", "REDACTED")]))
        #expect(
            PrincipalFields(["Cookie"], isShared: true).redacted(fields([("Authorization", "a")]))
                == fields([("Authorization", "REDACTED")])
        )
    }

    @Test func `credentials in different fields or lines are different principals, even if their texts are equal`() {
        let texts = [
            canonical([("Authorization", "a"), ("Cookie", "b")]), canonical([("Authorization", "ab")]),
            canonical([("Authorization", "a")], query: "access_token=b"),
            canonical([("Cookie", "a"), ("Authorization", "b")]),
            canonical([("Authorization", "a"), ("Authorization", "b")]), canonical([("Authorization", "a, b")]),
            canonical([("Authorization", "a6:cookie1:b")]), canonical([], query: "access_token=a"),
            canonical([], query: "access_token=a&access_token=b"), canonical([], query: "access_token"),
        ]
        #expect(Set(texts).count == texts.count)
    }

    @Test(arguments: [
        ("code=a1b2c3d4e5&state=b", "code=b1b2c3d4e5&state=b"), ("grant_type=x&code=a", "grant_type=x&code=b"),
        ("redirect_uri=x&code=SplxlOBeZQQYbYS", "redirect_uri=x&code=TplxlOBeZQQYbYS"),
        ("ticket=ST-1-a&service=s", "ticket=ST-1-b&service=s"),
        ("ticket=ST-1-aA5Yuvrxzp", "ticket=ST-1-bA5Yuvrxzp"), ("sid=a", "sid=b"), ("SAMLResponse=a", "SAMLResponse=b"),
        ("%63ode=a1b2c3d4e%35&STATE=b", "%63ode=b1b2c3d4e%35&STATE=b"), ("user=a&pin=1234", "user=a&pin=4321"),
    ])
    func `parameters of OAuth, CAS and SAML divide principals`(_ one: String, _ other: String) {
        #expect(canonical([], query: one) != nil)
        #expect(canonical([], query: one) != canonical([], query: other))
    }

    @Test(arguments: [
        "code=DE", "code=DE&country=x", "ticket=17&code=DE", "ticket=17", "service=s", "state=open", "code=DE&state=CA",
        "code=DE&client_id=a", "code=SUMMER2024&state=CA", "code=united-states-of-america&redirect_uri=x",
        "ticket=17&service=s3", "ticket=ST-123", "ticket=PROJ-1234&service=desk", "pin=560001", "pin=560001&state=KA",
        "pin=1234", "q=1&d=2&k=3",
    ])
    func `parameters that only resemble those of OAuth, CAS and SAML do not divide principals`(_ query: String) {
        #expect(canonical([], query: query) == nil)
    }

    @Test func `-?name removes a parameter from the principal`() {
        let principal = PrincipalFields(["-?code", "-?ticket"])
        #expect(principal.canonical(target: bytes("/x?code=a1b2c3d4e5&state=b"), fields: fields([])) == nil)
    }

    @Test(arguments: [
        ("/a?access_token=secret&page=2", "/a?access_token=REDACTED&page=2"),
        ("/a?code=a1b2c3d4e5&state=x", "/a?code=REDACTED&state=x"), ("/a?code=DE&state=x", "/a?code=DE&state=x"),
        ("/a?page=2&Access%5Ftoken=s", "/a?page=2&Access%5Ftoken=REDACTED"),
        ("/a?access_token=a=b", "/a?access_token=REDACTED"), ("/a?access_token", "/a?access_token"),
        ("/a?x=access_token", "/a?x=access_token"),
        ("/a", "/a"), ("/a?", "/a?"), ("/a?&&access_token=s&", "/a?&&access_token=REDACTED&"),
    ])
    func `credentials in a target are redacted`(_ target: String, _ expected: String) {
        #expect(text(PrincipalFields().redacted(target: bytes(target))) == expected)
    }

    @Test func `credentials in fields are redacted`() {
        let redacted = PrincipalFields().redacted(
            fields([
                ("authorization", "Bearer s"), ("Cookie", "s"), ("Set-Cookie", "s"), ("Proxy-Authorization", "s"),
                ("X", "kept"),
                ("Location", "https://a.test/?access_token=s"),
                ("Link", "<https://a.test/?access_token=s&p=2>; rel=next, <b>"),
            ])
        )
        #expect(
            redacted
                == fields([
                    ("authorization", "REDACTED"), ("Cookie", "REDACTED"), ("Set-Cookie", "REDACTED"),
                    ("Proxy-Authorization", "REDACTED"),
                    ("X", "kept"), ("Location", "https://a.test/?access_token=REDACTED"),
                    ("Link", "<https://a.test/?access_token=REDACTED&p=2>; rel=next, <b>"),
                ])
        )
    }
}

@Suite struct PrincipalKeyTests {
    private func inFolder(_ body: (String) throws -> Void) rethrows {
        let folder = TemporaryFolder()
        try body(folder.path + "/key")
    }

    private func write(_ count: Int, mode: mode_t, to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT, mode)
        _ = Glibc.write(descriptor, [UInt8](repeating: 7, count: count), count)
        close(descriptor)
        chmod(path, mode)
    }

    @Test func `the authentication code is HMAC-SHA-256`() {
        // RFC 4231, test case 2.
        let code = Crypto.authenticationCode(key: bytes("Jefe"), message: bytes("what do ya want for nothing?"))
        #expect(code.prefix(8).elementsEqual([0x5B, 0xDC, 0xC1, 0x46, 0xBF, 0x60, 0x75, 0x4E]))
        #expect(Crypto.authenticationCode(key: bytes("k"), message: []).count == 32)
    }

    @Test func `secrets are compared in full`() {
        #expect(Crypto.areEqual([1, 2], [1, 2]))
        #expect(!Crypto.areEqual([1, 2], [1, 3]))
        #expect(!Crypto.areEqual([1, 2], [1]))
    }

    @Test func `a principal key is created once, readable by its owner only, and found again`() throws {
        try inFolder { path in
            let made = try PrincipalKey.open(path: path)
            let found = try PrincipalKey.open(path: path)
            #expect(made.digest(of: bytes("a")) == found.digest(of: bytes("a")))
            #expect(made.digest(of: bytes("a")) != made.digest(of: bytes("b")))
            var status = stat()
            #expect(stat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o600)
            #expect(status.st_size == 32)
        }
    }

    @Test func `two principal keys differ`() throws {
        var digests: Set<[UInt8]> = []
        for _ in 0..<2 {
            try inFolder { path in digests.insert(try PrincipalKey.open(path: path).digest(of: [])) }
        }
        #expect(digests.count == 2)
    }

    @Test func `a principal key that others may read is refused`() {
        inFolder { path in
            write(32, mode: 0o640, to: path)
            let failure = #expect(throws: SecretFileError.self) { try PrincipalKey.open(path: path) }
            #expect(failure?.description.contains("has mode 640") == true)
            #expect(failure?.description.contains("chmod 600 \(path)") == true)
        }
    }

    @Test(arguments: [0, 31, 33, 100])
    func `a principal key of another length is refused`(_ count: Int) {
        inFolder { path in
            write(count, mode: 0o600, to: path)
            let failure = #expect(throws: SecretFileError.self) { try PrincipalKey.open(path: path) }
            #expect(failure?.description.contains("\(path) has \(count) bytes") == true)
        }
    }

    @Test func `a principal key that is a link, or not a regular file, is refused`() {
        inFolder { path in
            symlink("/etc/hostname", path)
            #expect(throws: SecretFileError.self) { try PrincipalKey.open(path: path) }
        }
        #expect(throws: SecretFileError.self) { try PrincipalKey.open(path: "/tmp") }
        #expect(throws: SecretFileError.self) { try PrincipalKey.open(path: "/nonexistent/key") }
    }
}
