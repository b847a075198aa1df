// swift-tools-version: 6.1
import PackageDescription

// A package of its own, so that nothing here is ever part of the daemon or of what its users build.
let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "larder", path: "..")],
    targets: [
        .executableTarget(
            name: "Measure",
            dependencies: [.product(name: "Mapping", package: "larder"), .product(name: "Store", package: "larder")],
            swiftSettings: [.swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny")]
        )
    ]
)
