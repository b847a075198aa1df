/// Metrics in Prometheus' text format, version 0.0.4.
enum PrometheusText {
    static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

    /// The whole exposition; metrics without samples still show what they are.
    static func write(_ metrics: [Metric], _ reading: Metric.Reading) -> String {
        var text = ""
        for metric in metrics {
            text += "# HELP \(metric.name) \(escaped(metric.sentence, quotes: false))\n"
            text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
            for sample in metric.samples(reading) {
                text += metric.name + sample.suffix
                if !sample.labels.isEmpty {
                    let labels = sample.labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }
                    text += "{" + labels.joined(separator: ",") + "}"
                }
                text += " \(number(sample.value))\n"
            }
        }
        return text
    }

    /// Whole numbers without a fraction, others in the shortest form that reads back the same.
    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        if let whole = Int64(exactly: value) { return String(whole) }
        return String(value)
    }

    /// Backslash and line feed are escaped everywhere, quotes only inside of labels.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
