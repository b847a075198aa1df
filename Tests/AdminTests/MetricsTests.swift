import Basics
import Testing

@testable import Admin
@testable import CachePolicy
@testable import HTTPServer
@testable import Proxy
@testable import Settings
@testable import Store

@Suite struct MetricsTests {
    @Test func `the counters of all workers are added up`() {
        let metrics = Metrics(workers: 3, startTime: 0)
        metrics.worker(0).hits.add()
        metrics.worker(2).hits.add(4)
        metrics.worker(1).count(.hit)
        #expect(metrics.total { $0.hits.value } == 6)
    }

    @Test(arguments: Outcome.allCases)
    func `every outcome has a counter of its own`(outcome: Outcome) {
        let worker = WorkerMetrics()
        worker.count(outcome)
        #expect(Outcome.allCases.filter { worker.value(of: $0) == 1 } == [outcome])
    }

    @Test func `counting from many threads loses nothing`() async {
        let metrics = Metrics(workers: 2, startTime: 0)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask { for _ in 0..<10_000 { metrics.worker(task % 2).hits.add() } }
            }
        }
        #expect(metrics.total { $0.hits.value } == 80_000)
    }

    @Test func `a fetch is counted by its result and its time`() {
        let upstream = Metrics(workers: 1, startTime: 0).upstream("github")
        upstream.started()
        upstream.started()
        upstream.ended(status: 200, seconds: 0.003)
        #expect(upstream.inFlight.value == 1)
        upstream.ended(result: "refused", seconds: 40)
        #expect(upstream.inFlight.value == 0)
        #expect(upstream.allFinished.results == ["2xx": 1, "refused": 1])
        #expect(upstream.allFinished.latency.counts.reduce(0, +) == 2)
        #expect(upstream.allFinished.latency.counts.last == 1)
    }

    @Test func `an upstream keeps its counters`() {
        let metrics = Metrics(workers: 1, startTime: 0)
        #expect(metrics.upstream("github") === metrics.upstream("github"))
        #expect(metrics.allUpstreams.map(\.name) == ["github"])
    }
}

@Suite struct PrometheusTextTests {
    @Test func `every metric says what it is before its samples`() {
        let text = exposition()
        for metric in Metric.all {
            #expect(text.contains("# HELP \(metric.name) "))
            #expect(text.contains("# TYPE \(metric.name) \(metric.kind.rawValue)\n"))
        }
    }

    @Test func `names of metrics are unique and valid`() {
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
        for metric in Metric.all {
            #expect(metric.name.wholeMatch(of: /[a-z][a-z0-9_]*/) != nil)
            #expect((metric.kind == .counter) == metric.name.hasSuffix("_total"), "\(metric.name)")
        }
    }

    @Test func `every line of the metrics is a sample or a comment`() {
        let sample = /[a-z_]+(\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\})? (\+Inf|-?[0-9.e+-]+)/
        let text = exposition()
        #expect(text.hasSuffix("\n"))
        for line in text.split(separator: "\n") where !line.hasPrefix("# ") {
            #expect(line.wholeMatch(of: sample) != nil, "\(line)")
        }
    }

    @Test func `a histogram's buckets are cumulative and end with the count`() {
        let lines = exposition().split(separator: "\n").filter { $0.hasPrefix("larder_upstream_duration_seconds") }
        #expect(lines.contains(#"larder_upstream_duration_seconds_bucket{upstream="a\"b\\c\n",le="0.001"} 0"#))
        #expect(lines.contains(#"larder_upstream_duration_seconds_bucket{upstream="a\"b\\c\n",le="0.005"} 1"#))
        #expect(lines.contains(#"larder_upstream_duration_seconds_bucket{upstream="a\"b\\c\n",le="+Inf"} 2"#))
        #expect(lines.contains(#"larder_upstream_duration_seconds_count{upstream="a\"b\\c\n"} 2"#))
        #expect(lines.contains(#"larder_upstream_duration_seconds_sum{upstream="a\"b\\c\n"} 40.003"#))
    }

    @Test func `no series occurs twice, and each metric has one TYPE line`() {
        let series = exposition().split(separator: "\n").filter { !$0.hasPrefix("# ") }.map {
            $0[..<($0.lastIndex(of: " ") ?? $0.endIndex)]
        }
        #expect(Set(series).count == series.count)
        let names = exposition().split(separator: "\n").filter { $0.hasPrefix("# TYPE ") }
        #expect(Set(names).count == names.count)
    }

    @Test func `response times are shown by route, and beyond a limit as other`() {
        let lines = exposition().split(separator: "\n").filter { $0.hasPrefix("larder_response_duration_seconds") }
        let label = #"upstream="a\"b\\c\n",route="users/{id}""#
        #expect(lines.contains("larder_response_duration_seconds_bucket{\(label),le=\"0.001\"} 1"))
        #expect(lines.contains("larder_response_duration_seconds_bucket{\(label),le=\"+Inf\"} 2"))
        #expect(lines.contains("larder_response_duration_seconds_count{\(label)} 2"))
        #expect(lines.contains(#"larder_response_duration_seconds_count{upstream="a\"b\\c\n",route="other"} 1"#))
        #expect(lines.count == 2 * (Histogram.bounds.count + 3))
    }

    @Test func `requests are shown by upstream, route, outcome and class of status`() {
        let lines = exposition().split(separator: "\n").filter { $0.hasPrefix("larder_route_requests_total") }
        let upstream = #"upstream="a\"b\\c\n""#
        #expect(
            lines.sorted() == [
                #"larder_route_requests_total{\#(upstream),route="other",outcome="bypass",status="2xx"} 1"#,
                #"larder_route_requests_total{\#(upstream),route="users/{id}",outcome="hit",status="2xx"} 64"#,
                #"larder_route_requests_total{\#(upstream),route="users/{id}",outcome="miss",status="2xx"} 1"#,
                #"larder_route_requests_total{\#(upstream),route="users/{id}",outcome="miss",status="5xx"} 1"#,
            ]
        )
    }

    @Test func `routes beyond the limit are counted together`() {
        let upstream = Metrics(workers: 1, startTime: 0).upstream("github")
        for number in 0..<UpstreamMetrics.routeLimit + 50 {
            upstream.count(.sample(route: "route/\(number)", .miss), isTimed: false)
        }
        let routes = upstream.allRoutes
        #expect(routes.count == UpstreamMetrics.routeLimit + 1)
        #expect(routes.first?.route == nil && routes.first?.figures.requests.values.reduce(0, +) == 50)
    }

    @Test func `the remaining requests of each rate limit are shown`() {
        let text = exposition()
        let label = #"upstream="a\"b\\c\n",resource="core""#
        #expect(text.contains("larder_upstream_ratelimit_remaining{\(label)} 4990\n"))
        #expect(text.contains("larder_upstream_ratelimit_limit{\(label)} 5000\n"))
        #expect(text.contains(#"larder_upstream_ratelimit_remaining{upstream="a\"b\\c\n"} 7"# + "\n"))
        #expect(text.contains(#"larder_upstream_failing{upstream="a\"b\\c\n"} 1"# + "\n"))
        #expect(text.contains(#"larder_upstream_unreachable{upstream="a\"b\\c\n"} 1"# + "\n"))
    }

    @Test(
        arguments: [
            (0, "0"), (1, "1"), (0.5, "0.5"), (1e15, "1000000000000000"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
            (.nan, "NaN"), (1_700_000_000.25, "1700000000.25"),
        ] as [(Double, String)]
    )
    func `numbers are written in Prometheus' form`(value: Double, text: String) {
        #expect(PrometheusText.number(value) == text)
    }

    @Test func `the metrics describe the process`() {
        let figures = ProcessFigures.read()
        #expect((figures.residentBytes ?? 0) > 1_000_000)
        #expect((figures.openDescriptors ?? 0) >= 3)
        #expect((figures.descriptorLimit ?? 0) >= 3)
        #expect(figures.cpuSeconds > 0)
    }

    private func exposition() -> String {
        let metrics = Metrics(workers: 2, startTime: 0)
        metrics.worker(1).hits.add(7)
        let upstream = metrics.upstream("a\"b\\c\n")
        upstream.started()
        upstream.ended(status: 200, seconds: 0.003)
        upstream.started()
        upstream.ended(result: "refused", seconds: 40)
        upstream.count(.sample(route: "users/{id}", .miss, seconds: 0.0005), isTimed: true)
        upstream.count(.sample(route: "users/{id}", .miss, status: 500, seconds: 3), isTimed: true)
        upstream.count(.sample(route: "users/{id}", .hit), weight: 64, isTimed: false)
        upstream.count(.sample(route: nil, .bypass, seconds: 100), isTimed: true)
        upstream.record { $0.recordLimit(RateLimit(limit: 5000, remaining: 4990, resource: "core")) }
        upstream.record { $0.recordLimit(RateLimit(remaining: 7)) }
        for _ in 0..<5 { _ = upstream.record { $0.responded("500", at: 0) } }
        _ = upstream.record { $0.gotNoResponse("refused", at: 0) }
        return PrometheusText.write(
            Metric.all,
            Metric.Reading(
                metrics: metrics,
                store: StoreStatistics(),
                count: StoreCount(),
                memory: (responses: 0, bytes: 0, evictions: 0),
                process: ProcessFigures.read(),
                mode: .offline,
                version: "0.1"
            )
        )
    }
}
