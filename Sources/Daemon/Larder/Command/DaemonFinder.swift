import Admin
import Glibc
import Settings

/// Finds the daemon for a command: its address and its token.
///
/// The address is that of `--admin`, else of `LARDER_ADMIN`, else of `admin:` in the daemon's config, else the default. Of
/// several addresses in a config, a Unix socket that this user may connect to is preferred: it needs no token.
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
        let settings = try settings()
        let addresses = settings?.admin ?? Configuration().admin
        let address = given ?? addresses.first(where: Self.isOpen) ?? addresses.first { !$0.isUnix } ?? addresses[0]
        // A Unix socket needs no token.
        if !address.isUnix {
            if token == nil { token = try storedToken(settings) }
            if token == nil { token = try givenToken() }
        }
        return AdminClient(address: address, token: token, socket: Self.closedSocket(settings))
    }

    /// The files that may be the daemon's store, the likeliest first; only the named one if there is one.
    func stores() throws(AdminClientError) -> [String] {
        if let store { return [store] }
        if let named = try settings()?.store.path { return [named] }
        return [Defaults(environment: environment).storePath, Self.serviceStore].compactMap(\.self)
    }

    /// The config, ignoring its mistakes, which matter only to those who start the daemon; nil if there is none.
    private func settings() throws(AdminClientError) -> Configuration? {
        let named = config ?? environment["LARDER_CONFIG"].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = named ?? ConfigOptions.usualPath(environment: environment) else { return nil }
        guard access(path, R_OK) == 0 else {
            // The user has not named it, and may reach the service without being able to read its config.
            guard named != nil else { return nil }
            throw AdminClientError("the config \(path) cannot be read: \(PermissionRemedy.reason(errno, for: path))")
        }
        return ConfigFile.read(path, environment: environment).settings
    }

    /// The address from the command line or the environment.
    private func givenAddress() throws(AdminClientError) -> Address? {
        if let admin { return admin }
        guard let named = environment["LARDER_ADMIN"], !named.isEmpty else { return nil }
        do {
            return try Address(named)
        } catch {
            throw AdminClientError("LARDER_ADMIN: \(error.description)")
        }
    }

    /// The token from the environment.
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

    /// The token beside the store; nil if there is none yet.
    private func storedToken(_ settings: Configuration?) throws(AdminClientError) -> String? {
        let usual = [settings?.store.path, Defaults(environment: environment).storePath, Self.serviceStore]
        var refusal: AdminClientError?
        for store in store.map({ [$0] }) ?? usual.compactMap(\.self) {
            do throws(AdminTokenError) {
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
