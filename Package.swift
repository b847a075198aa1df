// swift-tools-version: 6.3
import PackageDescription

/// What every target is built with; warnings become errors in CI (`make lint`).
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
]

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder", targets: ["Daemon"]),
        // For the benchmarks, a package of their own.
        .library(name: "Mapping", targets: ["Mapping"]),
        .library(name: "Store", targets: ["Store"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
    ],
    targets: [
        .systemLibrary(name: "CEvent", pkgConfig: "libevent_pthreads", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CCompression",
            providers: [.apt(["zlib1g-dev", "libbrotli-dev", "libzstd-dev"])]
        ),

        .target(name: "Mapping", swiftSettings: settings),
        .target(
            name: "Store",
            dependencies: [
                "Mapping",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "Daemon",
            dependencies: [
                "CEvent", "CCurl", "CCrypto", "CCompression", "Mapping", "Store",
                .product(name: "Yams", package: "Yams"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "StructuredFieldValues", package: "swift-http-structured-headers"),
                .product(name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
            ],
            swiftSettings: settings
        ),

        // What tests of several targets use: processes, folders, threads that wait.
        .target(name: "TestSupport", path: "Tests/TestSupport", swiftSettings: settings),
        .testTarget(name: "MappingTests", dependencies: ["Mapping", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "StoreTests", dependencies: ["Store", "Mapping", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "DaemonTests",
            dependencies: ["Daemon", "Store", "Mapping", "TestSupport"],
            swiftSettings: settings
        ),
        .testTarget(name: "EndToEndTests", dependencies: ["Daemon", "TestSupport"], swiftSettings: settings),
    ]
)
