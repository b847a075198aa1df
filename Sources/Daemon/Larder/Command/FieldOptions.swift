import ArgumentParser

/// `-H`: the fields of a request that a command speaks of.
struct FieldOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field of the request; may be repeated.", valueName: "name: value")
    )
    var header: [String] = []
}
