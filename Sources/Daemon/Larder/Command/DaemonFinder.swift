import Admin
import Glibc
import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store

/// Finds the daemon for a command: its address and its token.
///
/// The address is that of `--admin`, else of `LARDER_ADMIN`, else of `admin:` in the daemon's config, else the default. Of
/// several addresses in a config, a Unix socket that this user may connect to is preferred: it needs no token. If nothing listens
/// there, it is where the daemon that has the store open says it is.
///
/// A config that was broken after the daemon had read it no longer says where it is. Then a daemon is found that has its config from
/// the same file: where one that has the store open says it is, or at the default address.
struct DaemonFinder {
    /// The service's store in Debian's package.
    static let serviceStore = "/var/lib/larder/larder.db"

    var admin: Address?
    var store: String?
    var config: String?
    let environment: [String: String]

    /// A client of the daemon; fails if the config or the token cannot be read.
    func client() throws(AdminClientError) -> AdminClient {
        let given = try givenAddress()
        var token = store == nil ? try givenToken() : nil
        // Then the config need not be read, which takes a tenth of a second for a large one.
        if let given, config == nil, given.isUnix || token != nil { return AdminClient(address: given, token: token) }
        let settings: Configuration?
        do {
            settings = try self.settings()
        } catch {
            guard given == nil, !error.mistakes.isEmpty, let client = clientOfBrokenConfig() else { throw error }
            return client
        }
        let addresses = settings?.admin ?? Configuration().admin
        var address = given ?? addresses.first(where: Self.isOpen) ?? addresses.first { !$0.isUnix } ?? addresses[0]
        // It may have been started with another address, or still listen where its config said before.
        if given == nil, let announced = announced(settings).first, announced != address, !Self.isListening(at: address)
        {
            address = announced
        }
        // A Unix socket needs no token.
        if !address.isUnix {
            if token == nil { token = try storedToken(settings) }
            if token == nil { token = try givenToken() }
        }
        return AdminClient(address: address, token: token, socket: Self.closedSocket(settings))
    }

    /// The files that may be the daemon's store, the likeliest first; only the named one if there is one.
    func stores() throws(AdminClientError) -> [String] { stores(try settings()) }

    private func stores(_ settings: Configuration?) -> [String] {
        if let named = store ?? settings?.store.path { return [named] }
        return [Defaults(environment: environment).storePath, Self.serviceStore].compactMap(\.self)
    }

    /// The admin addresses of the daemons that have these stores open, as they say themselves.
    private func announced(_ settings: Configuration?) -> [Address] {
        stores(settings).compactMap(ObjectStore.announcedAdmin).compactMap { try? Address($0) }
    }

    private static func isListening(at address: Address) -> Bool {
        do throws(AdminClientError) {
            _ = try AdminClient(address: address, token: nil).send("GET", "/healthz")
            return true
        } catch { return !error.isAbsence }
    }

    /// A client of the running daemon that has its config from the selected file, whatever that says by now; nil if none is found.
    private func clientOfBrokenConfig() -> AdminClient? {
        guard let path = configPath.flatMap(Self.resolved) else { return nil }
        for address in announced(nil) + Configuration().admin {
            let token = (try? storedToken(nil)) ?? (try? givenToken())
            let client = AdminClient(address: address, token: address.isUnix ? nil : token)
            guard let response = try? client.send("GET", "/status"),
                let status = try? AdminJSON.decode(Status.self, from: response),
                status.config.flatMap(Self.resolved) == path
            else { continue }
            return client
        }
        return nil
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The config that is named, or the usual one; nil without a file.
    private var configPath: String? { config ?? ConfigOptions.usualPath(environment: environment) }

    /// The config, ignoring mistakes that matter only to those who start the daemon; nil without a file.
    private func settings() throws(AdminClientError) -> Configuration? {
        guard let path = configPath else { return nil }
        guard access(path, R_OK) == 0 else {
            // The user has not named it, and may reach the service without being able to read its config.
            guard config ?? environment["LARDER_CONFIG"] ?? "" != "" else { return nil }
            throw AdminClientError("the config \(path) cannot be read: \(PermissionRemedy.reason(errno, for: path))")
        }
        let file = ConfigFile.read(path, environment: environment)
        guard file.errorsAboutAdmin.isEmpty else { throw AdminClientError(mistakes: file.errorsAboutAdmin) }
        return file.settings
    }

    private func givenAddress() throws(AdminClientError) -> Address? {
        if let admin { return admin }
        guard let named = environment["LARDER_ADMIN"], !named.isEmpty else { return nil }
        do { return try Address(named) } catch { throw AdminClientError("LARDER_ADMIN: \(error.description)") }
    }

    private func givenToken() throws(AdminClientError) -> String? {
        guard let token = environment["LARDER_ADMIN_TOKEN"], !token.isEmpty else { return nil }
        guard token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw AdminClientError(
                "LARDER_ADMIN_TOKEN contains characters that no token has; copy it from admin.token beside the store"
            )
        }
        return token
    }

    /// Whether it is a Unix socket that this user may connect to.
    private static func isOpen(_ address: Address) -> Bool {
        guard case .unix(let path, _, _) = address else { return false }
        return access(path, R_OK | W_OK) == 0
    }

    /// A Unix socket of the config that this user may not connect to.
    private static func closedSocket(_ settings: Configuration?) -> String? {
        for case .unix(let path, _, _) in settings?.admin ?? [] where access(path, W_OK) != 0 && errno == EACCES {
            return path
        }
        return nil
    }

    private func storedToken(_ settings: Configuration?) throws(AdminClientError) -> String? {
        let usual = [settings?.store.path, Defaults(environment: environment).storePath, Self.serviceStore]
        var refusal: AdminClientError?
        for store in store.map({ [$0] }) ?? usual.compactMap(\.self) {
            do throws(SecretFileError) {
                if let token = try AdminToken.load(from: AdminToken.path(besideStore: store)) { return token }
            } catch {
                let advice = AdminClientError.alternatives(
                    "run this command as the user that runs Larder",
                    "set LARDER_ADMIN_TOKEN",
                    Self.closedSocket(settings)
                )
                refusal = refusal ?? AdminClientError("\(error.description); \(advice)")
            }
        }
        if let refusal { throw refusal }
        return nil
    }
}
