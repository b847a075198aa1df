import Glibc
import HTTPSemantics
import TestSupport
import Testing

@testable import HTTPServer
@testable import Larder

/// Descriptors 3 and up are taken in a test process: these tests hand over a range that begins elsewhere.
@Suite(.serialized) struct ListenDescriptorsTests {
    let folder = TemporaryFolder()
    // The last ones that there can be: numbers are given out from below, and to take one that another test has open would
    // be to close it.
    let first: Int32 = {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int32(clamping: limit.rlim_cur) - 8
    }()
    let ours = ["LISTEN_PID": "\(getpid())"]

    @Test func `sockets are taken with their names and addresses`() throws {
        let port = try hand(over: 0, tcp: true)
        try hand(over: 1, unix: folder.path + "/admin.sock")
        defer { closeAll(2) }
        let environment = ours.merging(["LISTEN_FDS": "2", "LISTEN_FDNAMES": "data:admin"]) { $1 }
        let listeners = try ListenDescriptors.take(environment: environment, first: first)
        #expect(
            listeners == [
                InheritedListener(descriptor: first, name: "data", address: .tcp(host: "127.0.0.1", port: port)),
                InheritedListener(
                    descriptor: first + 1,
                    name: "admin",
                    address: .unix(path: folder.path + "/admin.sock")
                ),
            ]
        )
        #expect(fcntl(first, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(first + 1, F_GETFD) & FD_CLOEXEC != 0)
    }

    /// In a process of its own: others read the environment, and start programs with it, at the same time.
    @Test func `the environment is cleared`() async {
        await #expect(processExitsWith: .success) {
            let names = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]
            for name in names { setenv(name, "1", 1) }
            _ = try ListenDescriptors.take(environment: [:])
            exit(names.allSatisfy { getenv($0) == nil } ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    @Test(arguments: [
        [:], ["LISTEN_FDS": "2"], ["LISTEN_PID": "1", "LISTEN_FDS": "2"], ["LISTEN_PID": "", "LISTEN_FDS": "2"],
        ["LISTEN_PID": "\(getpid())"], ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": "0"],
        ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": "-1"], ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": "many"],
    ])
    func `sockets that are not declared for this process are left alone`(environment: [String: String]) throws {
        #expect(try ListenDescriptors.take(environment: environment, first: first) == [])
    }

    @Test func `a descriptor that is not open is refused`() {
        let environment = ours.merging(["LISTEN_FDS": "1"]) { $1 }
        #expect(throws: ListenDescriptorsError.notOpen(descriptor: first)) {
            try ListenDescriptors.take(environment: environment, first: first)
        }
    }

    @Test func `a socket that does not listen is refused`() throws {
        let plain = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        dup2(plain, first)
        close(plain)
        defer { closeAll(1) }
        let environment = ours.merging(["LISTEN_FDS": "1"]) { $1 }
        #expect(throws: ListenDescriptorsError.notListening(descriptor: first, name: "unknown")) {
            try ListenDescriptors.take(environment: environment, first: first)
        }
    }

    @Test func `a socket's name decides which side it serves, or else the admin address does`() {
        let listeners = [
            InheritedListener(descriptor: 3, name: "larder.socket", address: .tcp(host: "127.0.0.1", port: 8787)),
            InheritedListener(descriptor: 4, name: "larder.socket", address: .tcp(host: "127.0.0.1", port: 8788)),
            InheritedListener(descriptor: 5, name: "admin", address: .unix(path: "/run/larder/admin.sock")),
            InheritedListener(descriptor: 6, name: "data", address: .tcp(host: "::1", port: 8788)),
        ]
        let (data, admin) = listeners.sorted(adminAddresses: ["127.0.0.1:8788", "[::1]:8788"])
        #expect(data.map(\.descriptor) == [3, 6])
        #expect(admin.map(\.descriptor) == [4, 5])
    }

    /// Opens a listening socket at the descriptor `first + index`; answers its port.
    @discardableResult
    private func hand(over index: Int32, tcp: Bool = false, unix path: String = "") throws -> UInt16 {
        let made = socket(tcp ? AF_INET : AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(made) }
        if tcp {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            try bind(made, address, socklen_t(MemoryLayout<sockaddr_in>.size))
        } else {
            let (name, length) = try #require(unixSocketName(path))
            try bind(made, name, length)
        }
        try #require(listen(made, 1) == 0)
        try #require(dup2(made, first + index) >= 0)
        return SocketAddress.bound(made).port
    }

    private func bind<Address>(_ descriptor: Int32, _ address: Address, _ length: socklen_t) throws {
        let status = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, length) }
        }
        try #require(status == 0)
    }

    private func closeAll(_ count: Int32) {
        for index in 0..<count { close(first + index) }
    }
}
