import Foundation
import Glibc
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Upstream

/// An nginx with a certificate of a self-made authority, in a temporary folder.
final class TLSServer {
    private let temporary = TemporaryFolder()
    let port: Int
    private let process: TestProcess

    var folder: String { temporary.path }
    var caFile: String { folder + "/ca.pem" }
    var url: String { "https://localhost:\(port)" }

    init(http2: Bool, names: String = "DNS:localhost", daysValid: Int = 2) throws {
        let folder = temporary.path
        _ = try TestCertificates(in: folder, names: names, days: daysValid)
        let arguments = ["-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"]
        // Another test may take a port between the moment it is named and the moment nginx binds it.
        var attempts = 0
        while true {
            attempts += 1
            let port = Self.freePort()
            try Self.configuration(folder: folder, port: port, http2: http2)
                .write(toFile: folder + "/nginx.conf", atomically: true, encoding: .utf8)
            let process = try TestProcess("/usr/sbin/nginx", arguments)
            // nginx writes its number there once it has bound its port.
            if attempts == 5 || Self.comesUp(process, pidFile: folder + "/pid") {
                (self.port, self.process) = (port, process)
                return
            }
            Self.end(process)
        }
    }

    private static func comesUp(_ process: TestProcess, pidFile: String) -> Bool {
        for _ in 0..<3000 where process.end == nil {
            if access(pidFile, F_OK) == 0 { return true }
            usleep(20_000)
        }
        return false
    }

    func stop() {
        Self.end(process)
    }

    private static func end(_ process: TestProcess) {
        process.signal(SIGKILL)
        process.waitForEnd()
    }

    private static func freePort() -> Int {
        let server = RawServer { _ in }
        defer { server.stop() }
        return server.port
    }

    private static func configuration(folder: String, port: Int, http2: Bool) -> String {
        """
        daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/error.log;
        events { worker_connections 512; }
        http {
          access_log off; client_body_temp_path \(folder)/b; proxy_temp_path \(folder)/p;
          fastcgi_temp_path \(folder)/f; uwsgi_temp_path \(folder)/u; scgi_temp_path \(folder)/s;
          server {
            listen 127.0.0.1:\(port) ssl\(http2 ? " http2" : "");
            ssl_certificate \(folder)/server.pem; ssl_certificate_key \(folder)/server.key;
            keepalive_requests 100000; client_max_body_size 10m;
            location / { add_header X-Connection $connection always; add_header X-Host $host always;
                         default_type text/plain; return 200 "$request_method $request_uri $server_protocol"; }
            location /big { alias \(folder)/server.pem; }
            location /limited { client_max_body_size 10; return 200 "ok"; }
            location /close { return 444; }
          }
        }
        """
    }
}

@Suite struct `Upstream TLS` {
    static func options(_ server: TLSServer) -> UpstreamOptions {
        var options = UpstreamBench.options
        options.caFile = server.caFile
        options.http2 = true
        return options
    }

    @Test func `only certificates of a trusted authority are accepted`() async throws {
        let server = try TLSServer(http2: false)
        defer { server.stop() }
        let trusting = try UpstreamBench(Self.options(server))
        defer { trusting.stop() }
        let accepted = await trusting.get(server.url + "/x?y")
        #expect(accepted.text == "GET /x?y HTTP/1.1")
        #expect(accepted.head?.version == .http11)

        let careful = try UpstreamBench()
        defer { careful.stop() }
        let refused = await careful.get(server.url)
        #expect(refused.head == nil)
        #expect(refused.error?.label == "tls")
        #expect(refused.error?.requestMayHaveBeenProcessed == false)
    }

    @Test func `a certificate for another name is refused`() async throws {
        let server = try TLSServer(http2: true, names: "DNS:elsewhere.example")
        defer { server.stop() }
        let bench = try UpstreamBench(Self.options(server))
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error?.label == "tls")
    }

    @Test func `a missing file of authorities has its own error`() async throws {
        let server = try TLSServer(http2: true)
        defer { server.stop() }
        var options = Self.options(server)
        options.caFile = "/nonexistent/ca.pem"
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let answer = await bench.get(server.url)
        #expect(answer.error?.label == "tls")
        #expect(answer.error?.message.contains("/nonexistent/ca.pem") == true)
    }

    @Test func `plain HTTP at a TLS address has its own error`() async throws {
        let server = RawServer { connection in
            _ = connection.read()
            connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        let answer = await bench.get("https://127.0.0.1:\(server.port)/")
        #expect(answer.error?.label == "tls")
    }

    @Test func `HTTP/2 is used where offered, with many requests on one connection`() async throws {
        let server = try TLSServer(http2: true)
        defer { server.stop() }
        let bench = try UpstreamBench(Self.options(server))
        defer { bench.stop() }
        let url = server.url
        let first = await bench.get(url + "/first", Fields([Field("Host", "api.example")]))
        #expect(first.error == nil)
        #expect(first.head?.version == .http2)
        #expect(first.head?.reason == [])
        #expect(first.text == "GET /first HTTP/2.0")
        #expect(first.head?.fields.text("x-host") == "api.example")

        let connections = await withTaskGroup(of: String?.self) { group in
            // Fewer than the streams that libcurl puts on one connection.
            for number in 0..<90 {
                group.addTask {
                    let answer = await bench.get(url + "/\(number)")
                    return answer.text == "GET /\(number) HTTP/2.0" ? answer.head?.fields.text("x-connection") : nil
                }
            }
            return await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        // The first one, unless the server has ended it meanwhile.
        #expect(connections.count == 1 && connections.first != .some(nil))
    }

    @Test func `HTTP/1.1 is used by default`() async throws {
        let server = try TLSServer(http2: true)
        defer { server.stop() }
        var options = Self.options(server)
        options.http2 = UpstreamOptions().http2
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        #expect(await bench.get(server.url).head?.version == .http11)
    }

    @Test(arguments: [true, false]) func `bodies and all methods work over TLS`(http2: Bool) async throws {
        let server = try TLSServer(http2: http2)
        defer { server.stop() }
        let bench = try UpstreamBench(Self.options(server))
        defer { bench.stop() }
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "X-OWN"] {
            for body in [nil, RequestBody("hello"), RequestBody(length: nil, Array("chunked".utf8), ended: true)] {
                let answer = await bench.send(UpstreamRequest(method: method, url: server.url + "/m", body: body))
                #expect(answer.error == nil)
                #expect(answer.text == (method == "HEAD" ? "" : "\(method) /m HTTP/\(http2 ? "2.0" : "1.1")"))
            }
        }
        let large = RequestBody(length: 1_000_000, [UInt8](repeating: 1, count: 1_000_000), ended: true)
        let limited = await bench.send(UpstreamRequest(method: "POST", url: server.url + "/limited", body: large))
        #expect(limited.head?.status == 413)
        #expect(limited.error == nil)
    }

    @Test(arguments: ["GET", "POST"]) func `a TLS connection closed without a response is a reset`(method: String)
        async throws
    {
        for http2 in [true, false] {
            let server = try TLSServer(http2: http2)
            defer { server.stop() }
            let bench = try UpstreamBench(Self.options(server))
            defer { bench.stop() }
            _ = await bench.get(server.url)
            let answer = await bench.send(UpstreamRequest(method: method, url: server.url + "/close"))
            #expect(answer.error == .reset(afterBytes: 0), "\(String(describing: answer.error))")
            #expect(await bench.get(server.url).error == nil)
        }
    }
}
