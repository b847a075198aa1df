import Foundation
import HTTPSemantics
import Proxy
package import Store

/// Selects the stored responses that become a recording.
package struct FreezeSelection: Sendable {
    /// Only responses that contain an object of this model.
    package var model: String?
    /// Only responses of one principal, by its label; nil if there is only one.
    package var principal: String?
    /// Only responses received within this time, in µs.
    package var maxAge: Int64?
    /// Only responses whose upstream, and path with query, this accepts.
    package var covers: (@Sendable (_ upstream: String, _ url: String) -> Bool)?

    package init() {}
}

/// Recordings of stored responses.
extension Recordings {
    /// Makes a recording of stored responses, as a client would receive them now, in the order of their arrival.
    ///
    /// Of several variants of one response it contains the newest.
    package func freeze(_ name: String, _ selection: FreezeSelection, of store: ObjectStore)
        async throws(RecordingError)
        -> RecordingSummary
    {
        let place = try newPlace(name)
        let rows = try await Self.rows(selection, store)
        let now = Date().timeIntervalSince1970
        let writer = try RecordingWriter(place, config: config, recorded: now)
        var summary = RecordingSummary()
        var redactors: [String: Redactor] = [:]
        for (index, upstream) in upstreams.enumerated() {
            redactors[upstream.name] = Redactor(upstream, numbers: true, first: 1 + index * 1_000_000)
        }
        let known = Dictionary(upstreams.map { ($0.name, $0) }) { first, _ in first }
        do throws(RecordingError) {
            for row in rows {
                guard let upstream = known[row.upstream], let document = try await Self.document(row, selection, store)
                else { continue }
                var exchange = Redactor.Exchange(
                    target: Array(row.url.utf8),
                    requestFields: upstream.requestFields(ofContext: document.key.context),
                    requestBody: []
                )
                exchange.status = document.status
                exchange.responseFields = ResponseCache.fields(of: document)
                // Lengths are computed at replay.
                exchange.responseFields.remove("content-length")
                exchange.responseBody = document.body
                redactors[row.upstream]?.redact(&exchange, method: "GET", route: upstream.route(ofURL: row.url))
                let line = RecordedExchange(
                    upstream: row.upstream,
                    credential: row.principal == Self.anonymous ? nil : 1,
                    time: RecordingTime.text(Double(row.end) / 1_000_000),
                    request: .init(
                        method: "GET",
                        target: String(decoding: exchange.target, as: UTF8.self),
                        fields: exchange.requestFields.recorded
                    ),
                    response: .init(status: document.status, fields: exchange.responseFields.recorded)
                )
                try writer.append(line, requestBody: [], responseBody: exchange.responseBody)
                summary.count += 1
            }
            // A value may be recognised as a secret only after it was written.
            let all = redactors.values.filter { $0.learned > 0 }
            if !all.isEmpty { try writer.rewrite { bytes in all.reduce(bytes) { $1.replacingKnown($0) } } }
        } catch {
            try? FileManager.default.removeItem(atPath: place.path)
            throw error
        }
        for redactor in redactors.values { summary.suspects.merge(redactor.suspects) { $0 + $1 } }
        writer.flush()
        return summary
    }

    private static let anonymous = ObjectStore.label(ofPrincipal: [])

    /// The selected responses of one principal, the newest variant of each.
    private static func rows(_ selection: FreezeSelection, _ store: ObjectStore) async throws(RecordingError)
        -> [DocumentRow]
    {
        let earliest = selection.maxAge.map { store.clock.now() - $0 } ?? .min
        var found: [DocumentRow] = []
        var places: [String: Int] = [:]
        var principals: [String: Int] = [:]
        var query = DocumentQuery(principal: selection.principal, limit: 1000)
        repeat {
            let page: Page<DocumentRow>
            do throws(StoreError) {
                page = try await store.documents(query)
            } catch {
                throw RecordingError("the store", error.description)
            }
            for row in page.rows where row.end >= earliest && selection.covers?(row.upstream, row.url) ?? true {
                principals[row.principal, default: 0] += 1
                let place = [row.upstream, row.principal, row.context, row.url].joined(separator: "\n")
                if let known = places[place] {
                    found[known] = row
                } else {
                    places[place] = found.count
                    found.append(row)
                }
            }
            query.after = page.next
        } while query.after != nil
        guard principals.count <= 1 else {
            let list = principals.sorted { $0.key < $1.key }.map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
            throw RecordingError("the store", "it has responses of several principals; name one (--principal): \(list)")
        }
        return found
    }

    private static func document(_ row: DocumentRow, _ selection: FreezeSelection, _ store: ObjectStore)
        async throws(RecordingError) -> StoredDocument?
    {
        do throws(StoreError) {
            return try await store.document(row.id, showing: selection.model)
        } catch {
            throw RecordingError("the store", error.description)
        }
    }
}
