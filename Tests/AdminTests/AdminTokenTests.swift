import Glibc
import Settings
import TestSupport
import Testing

@testable import Admin

@Suite struct AdminTokenTests {
    let folder = TemporaryFolder()

    @Test func `the first start makes a token that only its owner can read`() throws {
        let path = folder.path + "/admin.token"
        let (token, origin) = try AdminToken.prepare(at: path)
        #expect(origin == .made)
        #expect(mode(of: path) == 0o600)
        let text = try #require(try AdminToken.load(from: path))
        #expect(text.utf8.count == 43)
        #expect(token.matches(Array(text.utf8)))
        #expect(folder.names == ["admin.token"])
    }

    @Test func `the next start finds the same token`() throws {
        let path = folder.path + "/admin.token"
        _ = try AdminToken.prepare(at: path)
        let text = try #require(try AdminToken.load(from: path))
        let (token, origin) = try AdminToken.prepare(at: path)
        #expect(origin == .found)
        #expect(token.matches(Array(text.utf8)))
    }

    @Test func `a token that is replaced in its file replaces the former one`() throws {
        let path = folder.path + "/admin.token"
        let (token, _) = try AdminToken.prepare(at: path)
        let old = Array(token.string.utf8)
        #expect(try !token.renew())
        func write(_ text: String, mode: mode_t) throws {
            unlink(path)
            try folder.write(text + "\n", to: "admin.token")
            chmod(path, mode)
        }
        try write("another-one-0123456789", mode: 0o600)
        #expect(try token.renew())
        #expect(token.matches(Array("another-one-0123456789".utf8)) && !token.matches(old))
        try write("readable-by-all-0123456789", mode: 0o644)
        #expect(throws: SecretFileError.self) { try token.renew() }
        try write("", mode: 0o600)
        #expect(throws: SecretFileError.self) { try token.renew() }
        unlink(path)
        #expect(try !token.renew())
        #expect(token.matches(Array("another-one-0123456789".utf8)))
    }

    @Test(arguments: [0o640, 0o604, 0o644, 0o660] as [mode_t])
    func `a token that others could read is replaced`(mode wrong: mode_t) throws {
        let path = folder.path + "/admin.token"
        _ = try AdminToken.prepare(at: path)
        let old = try #require(try AdminToken.load(from: path))
        chmod(path, wrong)
        let (token, origin) = try AdminToken.prepare(at: path)
        #expect(origin == .replaced(mode: wrong))
        #expect(!token.matches(Array(old.utf8)))
        #expect(mode(of: path) == 0o600)
    }

    @Test func `a link in the token's place is refused`() throws {
        let path = folder.path + "/admin.token"
        symlink("/etc/hostname", path)
        #expect(throws: refusal(of: path)) { try AdminToken.prepare(at: path) }
    }

    @Test func `a folder in the token's place is refused`() throws {
        let path = folder.path + "/admin.token"
        mkdir(path, 0o700)
        #expect(throws: refusal(of: path)) { try AdminToken.prepare(at: path) }
    }

    private func refusal(of path: String) -> SecretFileError {
        SecretFileError("the admin token \(path) is not a plain file: remove it, and Larder makes a new one")
    }

    @Test(arguments: ["", "\n", "short", "with spaces in between it is none", "zeile eins zwei drei\nzeile zwei"])
    func `a file that holds no token is refused`(content: String) throws {
        let path = folder.path + "/admin.token"
        try folder.write(content, to: "admin.token")
        let failure = #expect(throws: SecretFileError.self) { try AdminToken.prepare(at: path) }
        #expect(failure?.description.hasPrefix("the admin token \(path) must contain one line of 16 to 512 ") == true)
    }

    @Test func `a token that the user has written is used`() throws {
        try folder.write("correct-horse-battery\n", to: "admin.token")
        let (token, origin) = try AdminToken.prepare(at: folder.path + "/admin.token")
        #expect(origin == .found)
        #expect(token.matches(Array("correct-horse-battery".utf8)))
    }

    @Test func `a command gets nil if there is no token`() throws {
        #expect(try AdminToken.load(from: folder.path + "/admin.token") == nil)
    }

    @Test func `two generated tokens differ`() throws {
        _ = try AdminToken.prepare(at: folder.path + "/one")
        _ = try AdminToken.prepare(at: folder.path + "/two")
        #expect(try AdminToken.load(from: folder.path + "/one") != AdminToken.load(from: folder.path + "/two"))
    }

    @Test(arguments: [
        ("Bearer correct-horse-battery", true), ("bearer  correct-horse-battery", true),
        ("BEARER correct-horse-battery", true), ("Bearer correct-horse-batterz", false),
        ("Bearer correct-horse-batter", false), ("Bearer correct-horse-batteryy", false),
        ("Bearer", false), ("Bearer ", false), ("", false), ("Basic correct-horse-battery", false),
        ("correct-horse-battery", false), ("Bearercorrect-horse-battery", false),
    ])
    func `only the whole token in Authorization is accepted`(field: String, opens: Bool) {
        #expect(AdminToken("correct-horse-battery").authorizes(Array(field.utf8)) == opens)
    }

    @Test(arguments: [("/var/lib/larder/larder.db", "/var/lib/larder/admin.token"), ("larder.db", "admin.token")])
    func `the token file is beside the store`(store: String, token: String) {
        #expect(AdminToken.path(besideStore: store) == token)
    }

    private func mode(of path: String) -> mode_t {
        var status = stat()
        stat(path, &status)
        return status.st_mode & 0o777
    }
}
