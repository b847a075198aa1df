import DaemonTestSupport
import Testing

@testable import CachePolicy

/// RFC 9111 §3: any final status may be stored, as long as it names its lifetime, but for a few.
@Suite struct StorableStatusTests {
    private static let statuses = [
        200, 201, 203, 204, 205, 299, 300, 301, 302, 303, 307, 308, 399, 400, 401, 402, 403, 404, 405, 406, 408, 409,
        410, 411,
        413, 414, 415, 417, 418, 421, 422, 425, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 511, 599,
    ]

    @Test(arguments: statuses, [false, true])
    func `a response of any status is stored and reused by explicit freshness`(_ status: Int, _ isShared: Bool) {
        for lifetime in [("Cache-Control", "max-age=60"), ("Expires", date(exampleDate + 60))] {
            let policy = policy([("Date", date(exampleDate)), lifetime], status: status, shared: isShared)
            #expect(policy.storability == .yes)
            #expect(policy.stored.reuse(at: exampleDate + 59, for: .none).isServable)
            #expect(!policy.stored.reuse(at: exampleDate + 60, for: .none).isServable)
        }
    }

    @Test(arguments: statuses)
    func `without a lifetime only some statuses are stored, and no response is reused`(_ status: Int) {
        let isKnown = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
        #expect((policy([], status: status).storability == .yes) == isKnown)
        #expect(!policy([], status: status).stored.reuse(at: exampleDate, for: .none).isServable)
    }

    @Test(arguments: [100, 101, 102, 103, 202, 206, 304])
    func `some statuses are never stored, whatever their lifetime`(_ status: Int) {
        #expect(policy([("Cache-Control", "public, max-age=60")], status: status).storability != .yes)
    }

    @Test func `a response to the client's own conditions or range is not stored`() {
        let conditional = request("GET", [("If-Match", "\"a\"")])
        let ranged = request("GET", [("Range", "bytes=9-")])
        let lines = [("Cache-Control", "max-age=60")]
        #expect(policy(lines, status: 412, request: conditional).storability == .no(.momentaryStatus))
        #expect(policy(lines, status: 416, request: ranged).storability == .no(.momentaryStatus))
        #expect(policy(lines, status: 404, request: conditional).storability == .yes)
    }

    @Test(arguments: [299, 306, 399, 418, 499, 599])
    func `must-understand keeps out a status that is not known`(_ status: Int) {
        #expect(
            policy([("Cache-Control", "max-age=60, must-understand")], status: status).storability
                == .no(.notUnderstood)
        )
        #expect(policy([("Cache-Control", "max-age=60")], status: status).storability == .yes)
    }
}

/// The reading of a cache that is shared by many people.
@Suite struct SharedReadingTests {
    private static let authorized = request("GET", [("Authorization", "x")])

    @Test(arguments: [
        ("max-age=60", false), ("", false), ("max-age=60, proxy-revalidate", false), ("max-age=60, no-cache", false),
        ("max-age=60, public", true), ("max-age=60, must-revalidate", true), ("s-maxage=60", true),
        ("s-maxage=60, private", false), ("public, no-store", false), ("max-age=60, public=1", false),
        ("max-age=60, \", public", false),
    ])
    func `a shared cache needs permission to store a response to a request with Authorization`(
        _ control: String,
        _ isStored: Bool
    ) {
        let answer = policy([("Cache-Control", control)], request: Self.authorized, shared: true)
        #expect((answer.storability == .yes) == isStored)
    }

    @Test func `a response that a 304 makes private is not reused, although it is stored`() {
        for (control, request) in [
            ("private, max-age=60", request()), ("max-age=60", Self.authorized),
        ] {
            let renewed = Freshening.freshened(
                fields([("Cache-Control", "public, max-age=60")]),
                status: 200,
                by: fields([("Cache-Control", control)]),
                request: request,
                times: ExchangeTimes(request: exampleDate, response: exampleDate),
                settings: {
                    var settings = CachePolicySettings()
                    settings.isShared = true
                    return settings
                }()
            )
            #expect(!renewed.policy.stored.reuse(at: exampleDate, for: .none).isServable)
        }
        #expect(policy([("Cache-Control", "private, max-age=60")]).stored.reuse(at: exampleDate, for: .none).isServable)
    }

    @Test func `a credential of Larder's own counts as Authorization`() {
        var settings = CachePolicySettings()
        settings.addsCredential = true
        for (isShared, control, isStored) in [
            (true, "max-age=60", false), (true, "public", true), (false, "max-age=60", true),
        ] {
            settings.isShared = isShared
            let policy = ResponsePolicy(
                request: request(),
                status: 200,
                fields: fields([("Cache-Control", control)]),
                times: ExchangeTimes(request: exampleDate, response: exampleDate),
                settings: settings
            )
            #expect((policy.storability == .yes) == isStored)
        }
    }

    @Test func `the targeted field may permit what Cache-Control does not`() {
        let lines = [("Cache-Control", "private"), ("Larder-Cache-Control", "max-age=60, public")]
        #expect(policy(lines, request: Self.authorized, shared: true).storability == .yes)
        let other = [("Cache-Control", "public, max-age=60"), ("Larder-Cache-Control", "max-age=60")]
        #expect(policy(other, request: Self.authorized, shared: true).storability == .no(.authorization))
    }
}
