import ArgumentParser

/// What is given on the command line and says nothing, as an unset variable of a shell does.
enum GivenText {
    /// Refuses arguments that are empty.
    static func require(_ arguments: KeyValuePairs<String, String?>) throws {
        for (name, text) in arguments where text?.isEmpty == true {
            throw ValidationError("the \(name) is empty: an unset variable, perhaps?")
        }
    }

    /// Refuses options that are empty.
    static func check(_ options: KeyValuePairs<String, String?>) throws {
        for (name, text) in options where text?.isEmpty == true {
            throw ValidationError("\(name) is empty: give it a value, or leave it out")
        }
    }

    /// Refuses options that are empty once.
    static func check(_ options: KeyValuePairs<String, [String]>) throws {
        for (name, texts) in options where texts.contains("") {
            throw ValidationError("\(name) is empty: give it a value, or leave it out")
        }
    }
}
