import Foundation
import TestSupport
import Testing

/// Writes to a path below an object's, such as `POST /orders/5/cancel`, change that object.
@Suite(.scripts) struct ActionTests {
    /// An origin with two orders, of which one can be cancelled; the action says nothing of it.
    private static func shop() throws -> (origin: Origin, state: Monitor<String>) {
        let state = Monitor("open")
        let origin = try Origin { request in
            let order = #"{"id":5,"state":"\#(state.current)"}"#
            switch (request.method, request.path) {
            case ("POST", "/orders/5/cancel"):
                state.withLock { $0 = "cancelled" }
                return .empty(204)
            case ("DELETE", "/orders/5/cancel"):
                state.withLock { $0 = "open" }
                return .empty(204)
            case ("POST", _): return .empty(409)
            case (_, "/orders"), (_, "/recent"): return .json("[\(order)]", Fresh.hour)
            case (_, "/orders/5"): return .json(order, Fresh.hour)
            default: return .json(#"{"count":1,"state":"\#(state.current)"}"#, Fresh.hour)
            }
        }
        return (origin, state)
    }

    /// - Parameter action: the route of the action, if it has one.
    private static func config(_ origin: Origin, action: String = "") -> String {
        """
        upstreams: { shop: { url: \(origin.url), lag: 0s } }
        store: { withhold: 10s }
        models: { Order: { identity: id, properties: { state: state } } }
        routes:
          - { path: orders, model: [Order] }
          - { path: recent, model: [Order] }
          - { path: "orders/{id}", model: Order, object: { id: id }, invalidates: stats }
        \(action)
        """
    }

    @Test(arguments: ["", #"  - { path: "orders/{id}/cancel", method: POST, invalidates: "orders/{id}" }"#])
    func `after an action every response that shows its object is asked for again`(action: String) throws {
        let (origin, _) = try Self.shop()
        let larder = try Larder(config: Self.config(origin, action: action))
        let paths = ["/orders?page=1", "/orders/5", "/recent", "/stats"]
        for path in paths { #expect(try larder.get(path).text.contains("open")) }
        #expect(try larder.waitForDocuments(4))
        #expect(try larder.request("POST", "/orders/5/cancel").status == 204)
        for path in paths {
            let answer = try larder.get(path)
            #expect(answer.text.contains("cancelled") && !answer.isHit, "\(path): \(answer.text)")
        }
        #expect(try larder.waitForQuiet())
        for path in paths { #expect(try larder.get(path).isHit, "\(path)") }
    }

    /// Without `object:` the last part of the path is taken for the identity.
    @Test(arguments: [true, false])
    func `an action invalidates what shows its object even if no route names the object of its path`(
        isDetailStored: Bool
    ) throws {
        let (origin, _) = try Self.shop()
        let larder = try Larder(config: Self.config(origin).replacing("object: { id: id }, ", with: ""))
        let paths = ["/orders?page=1", "/recent"] + (isDetailStored ? ["/orders/5"] : [])
        for path in paths { #expect(try larder.get(path).text.contains("open")) }
        #expect(try larder.waitForDocuments(paths.count))
        #expect(try larder.request("POST", "/orders/5/cancel").status == 204)
        for path in paths { #expect(try larder.get(path).text.contains("cancelled"), "\(path)") }
        // So is that of a write whose response shows nothing.
        #expect(try larder.waitForQuiet())
        for path in paths { #expect(try larder.get(path).isHit, "\(path)") }
        #expect(try larder.request("DELETE", "/orders/5/cancel").status == 204)
        for path in paths { #expect(try larder.get(path).text.contains("open"), "\(path)") }
    }

    @Test func `a write whose response lacks its object invalidates what shows the object that its path seems to name`()
        throws
    {
        let title = Monitor("a")
        let origin = try Origin { request in
            if request.method == "PATCH" {
                title.withLock { $0 = "b" }
                return .empty(204)
            }
            return .json(#"[{"id":5,"slug":"x","state":"\#(title.current)"}]"#, Fresh.hour)
        }
        let config = Self.config(origin).replacing("object: { id: id }, ", with: "")
            .replacing("identity: id", with: "identity: id, keys: [slug]")
        for path in ["/orders/5", "/orders/x"] {
            title.withLock { $0 = "a" }
            let larder = try Larder(config: config)
            #expect(try larder.get("/recent").text.contains("a"))
            #expect(try larder.waitForDocuments(1))
            #expect(try larder.request("PATCH", path).status == 204)
            #expect(try larder.get("/recent").text.contains(#""b""#), "\(path)")
        }
    }

    @Test func `a DELETE invalidates what shows the object that its path seems to name`() throws {
        let isThere = Monitor(true)
        let origin = try Origin { request in
            if request.method == "DELETE" {
                isThere.withLock { $0 = false }
                return .empty(204)
            }
            return .json(isThere.current ? #"[{"id":5,"state":"a"}]"# : "[]", Fresh.hour)
        }
        let larder = try Larder(config: Self.config(origin).replacing("object: { id: id }, ", with: ""))
        #expect(try larder.get("/recent").text.contains("a"))
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("DELETE", "/orders/5").status == 204)
        #expect(try larder.get("/recent").text == "[]")
    }

    @Test func `a DELETE that ends an action does not delete the object`() throws {
        let (origin, state) = try Self.shop()
        state.withLock { $0 = "cancelled" }
        let larder = try Larder(config: Self.config(origin))
        for path in ["/orders", "/orders/5"] { #expect(try larder.get(path).text.contains("cancelled")) }
        #expect(try larder.waitForDocuments(2))
        #expect(try larder.request("DELETE", "/orders/5/cancel").status == 204)
        for path in ["/orders", "/orders/5"] { #expect(try larder.get(path).text.contains("open"), "\(path)") }
        #expect(try larder.waitForObjects(1, of: "Order"))
    }

    @Test func `an action that fails changes nothing`() throws {
        let (origin, _) = try Self.shop()
        let larder = try Larder(config: Self.config(origin))
        _ = try larder.get("/orders/5")
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.request("POST", "/orders/5/ship").status == 409)
        #expect(try larder.get("/orders/5").isHit)
    }

    @Test func `an action that was cut off by a crash counts as done`() throws {
        let gate = Gate()
        let (origin, state) = try Self.shop()
        let larder = try Larder(config: Self.config(origin))
        for path in ["/orders/5", "/recent"] { _ = try larder.get(path) }
        #expect(try larder.waitForDocuments(2))
        origin.behave { request in
            if request.method == "POST" { return OriginResponse.empty(204).after(gate) }
            let order = #"{"id":5,"state":"\#(state.current)"}"#
            return .json(request.path == "/recent" ? "[\(order)]" : order, Fresh.hour)
        }
        let action = Background { try? larder.request("POST", "/orders/5/cancel") }
        origin.waitForRequests(1, "/orders/5/cancel")
        state.withLock { $0 = "cancelled" }
        larder.kill()
        gate.open()
        _ = try action.value()
        try larder.start()
        for path in ["/orders/5", "/recent"] { #expect(try larder.get(path).text.contains("cancelled"), "\(path)") }
    }
}
