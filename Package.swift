// swift-tools-version: 6.3
import PackageDescription

/// What every target is built with; warnings become errors in CI (`make lint`).
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // Debug builds check at run time that accesses exclude each other, and all tests run in them.
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release)),
]

/// What the path of a request may import, and so all that stands above it.
let belowProxy: [Target.Dependency] = [
    "Basics", "HTTPSemantics", "EventLoops", "HTTPServer", "Upstream", "CachePolicy", "Settings", "Mapping", "Store",
]
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder", targets: ["Larder"]),
        // For the benchmarks, a package of their own.
        .library(name: "Mapping", targets: ["Mapping"]),
        .library(name: "Store", targets: ["Store"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", exact: "1.7.0"),
    ],
    targets: [
        .systemLibrary(name: "CEvent", pkgConfig: "libevent_pthreads", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // Without pkg-config, because its file names a flag (-D_FILE_OFFSET_BITS) that SwiftPM does not take.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        // The program's allocator: a miss allocates on one thread and frees on another, at which glibc's is slow.
        .target(name: "CJemalloc", linkerSettings: [.linkedLibrary("jemalloc")]),
        .systemLibrary(
            name: "CCompression",
            providers: [.apt(["zlib1g-dev", "libbrotli-dev", "libzstd-dev"])]
        ),

        .target(name: "Basics", swiftSettings: settings),
        .target(name: "Mapping", dependencies: ["Basics"], swiftSettings: settings),
        .target(
            name: "Store",
            dependencies: [
                "Basics",
                "Mapping",
                "CCompression",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: settings
        ),

        // The rooms of the daemon, each of which sees only those above it (docs/architecture.md).
        room("HTTPSemantics", ["Basics"]),
        room("EventLoops", ["CEvent"]),
        room("HTTPServer", ["HTTPSemantics", "EventLoops"]),
        room("Upstream", ["HTTPSemantics", "EventLoops", "CCurl", "CCompression"]),
        room(
            "CachePolicy",
            [
                "HTTPSemantics",
                .product(name: "StructuredFieldValues", package: "swift-http-structured-headers"),
                .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
            ]
        ),
        room("Settings", ["HTTPSemantics", "CachePolicy", "Mapping", .product(name: "Yams", package: "Yams")]),
        room("Proxy", belowProxy + ["CCrypto", logging]),
        room("Recording", belowProxy + ["Proxy", .product(name: "Yams", package: "Yams"), logging]),
        room("Fleet", belowProxy + ["Proxy", "CHiredis", "CCrypto", logging]),
        // The dashboard's files become part of the binary: there is nothing to install beside it.
        room("Admin", belowProxy + ["Proxy", "Recording", "Fleet", logging], resources: [.embedInCode("Dashboard")]),
        .executableTarget(
            name: "Larder",
            dependencies: belowProxy + ["Proxy", "Recording", "Fleet", "Admin", "CJemalloc", argumentParser, logging],
            path: "Sources/Daemon/Larder",
            swiftSettings: settings
        ),

        // What tests of several targets use: processes, folders, threads that wait.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        // What tests of several rooms use: a client of raw bytes, fields, policies.
        .target(
            name: "DaemonTestSupport",
            dependencies: ["HTTPSemantics", "EventLoops", "HTTPServer", "CachePolicy"],
            path: "Tests/DaemonTestSupport",
            swiftSettings: settings
        ),
        tests("Basics"),
        tests("Mapping"),
        tests("Store", ["Mapping"]),
        tests("HTTPSemantics", ["DaemonTestSupport"]),
        tests("EventLoops", ["DaemonTestSupport"]),
        tests("HTTPServer", ["HTTPSemantics", "EventLoops", "DaemonTestSupport"]),
        tests("Upstream", ["HTTPSemantics", "EventLoops", "DaemonTestSupport"]),
        tests("CachePolicy", ["HTTPSemantics", "DaemonTestSupport"]),
        tests("Settings", ["HTTPSemantics", "CachePolicy", "Mapping", .product(name: "Yams", package: "Yams")]),
        tests("Proxy", belowProxy + ["DaemonTestSupport", logging]),
        tests("Recording", belowProxy + ["Proxy", "DaemonTestSupport", .product(name: "Yams", package: "Yams")]),
        tests("Fleet", belowProxy + ["Proxy", "DaemonTestSupport", logging]),
        tests("Admin", belowProxy + ["Proxy", "Recording", "DaemonTestSupport", logging]),
        tests("Larder", belowProxy + ["Proxy", "Admin", "DaemonTestSupport", argumentParser, logging]),
        // The built binary, over real sockets.
        .testTarget(
            name: "EndToEndTests",
            dependencies: ["Larder", "TestSupport", "CCrypto"],
            swiftSettings: settings
        ),
    ]
)

/// A room of the daemon.
func room(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "Sources/Daemon/\(name)",
        resources: resources,
        swiftSettings: settings
    )
}

/// The tests of a target, named after it.
func tests(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: [.target(name: name), "TestSupport"] + dependencies,
        swiftSettings: settings
    )
}

// `make test ROOM=Store` builds the tests of one room, and only what they need.
var only = Context.environment["LARDER_ROOM"].map { "\($0)Tests" }

// `make fuzz` builds an executable whose main is libFuzzer's. It shares files with the tests, and is part of no other build.
if Context.environment["LARDER_FUZZ"] != nil {
    let shared = ["Fixtures", "GeneratedBodies", "GeneratedModels", "Cases/WireFixtures"].map {
        "MappingTests/\($0).swift"
    }
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "HTTPSemantics", "HTTPServer", "Upstream", "CachePolicy", "Mapping", "Store", "TestSupport",
                "DaemonTestSupport", .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            path: "Tests",
            sources: ["Fuzz", "StoreTests/Support.swift"] + shared,
            swiftSettings: settings
        )
    )
    only = "Fuzz"
}

if let only {
    var needed: Set<String> = [only]
    for target in package.targets.reversed() where needed.contains(target.name) {
        for case .targetItem(let name, _) in target.dependencies { needed.insert(name) }
        for case .byNameItem(let name, _) in target.dependencies { needed.insert(name) }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
