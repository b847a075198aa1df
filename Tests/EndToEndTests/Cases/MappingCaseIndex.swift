/// The tests' own index of the cases: under each number what the list requests of Larder, and which test file holds it.
///
/// `keep`: the library's result; `change`: another one, on purpose; `own`: what the list says in words of its own. What
/// stands behind a semicolon, or alone, is not there yet, because it belongs to something not built yet;
/// `docs/mapping-cases.md` says what.
enum MappingCaseIndex {
    /// One case.
    struct Row {
        var number: String
        /// What the list says of Larder's result.
        var request: String
        /// The file whose tests bear the number; nil: all of it is still to come.
        var file: String?
        /// What is still to come, in words; nil: nothing.
        var later: String?
    }

    static let rows: [Row] = table.split(separator: "\n").map { line in
        let words = line.split(separator: " ", maxSplits: 2).map { $0.trimmed }
        let held = words[2].split(separator: ";", maxSplits: 1).map { $0.trimmed }
        let file = held[0].hasSuffix(".swift") ? held[0] : nil
        return Row(
            number: words[0],
            request: words[1],
            file: file,
            later: file == nil ? held[0] : held.dropFirst().first
        )
    }

    private static let table = """
        FJ-01 keep   FlamingJuneMappedViewTests.swift
        FJ-02 keep   FlamingJuneRequestTests.swift
        FJ-03 keep   FlamingJuneMappedViewTests.swift
        FJ-04 keep   FlamingJuneWireTests.swift
        FJ-05 change FlamingJuneMappedViewTests.swift
        FJ-06 change FlamingJuneMappedViewTests.swift
        FJ-07 change FlamingJuneMappedViewTests.swift
        FJ-08 keep   FlamingJuneWireTests.swift
        FJ-09 keep   FlamingJuneMappedViewTests.swift
        FJ-10 change FlamingJuneMappedViewTests.swift
        FJ-11 keep   FlamingJuneMappedViewTests.swift
        FJ-12 change FlamingJuneMappedViewTests.swift
        FJ-13 keep   FlamingJuneMappedViewTests.swift
        FJ-14 keep   FlamingJuneWireTests.swift
        FJ-15 keep   RelatedViewTests.swift
        FJ-16 keep   RelatedViewTests.swift
        FJ-17 change FlamingJuneMappedViewTests.swift
        FJ-18 keep   FlamingJuneWireTests.swift
        FJ-19 change FlamingJuneWireTests.swift
        FJ-20 keep   FlamingJuneMappedViewTests.swift
        FJ-21 change FlamingJuneMappedViewTests.swift
        FJ-22 keep   FlamingJuneWireTests.swift
        FJ-23 change FlamingJuneWireTests.swift
        FJ-24 keep   FlamingJuneWireTests.swift
        FJ-25 change FlamingJuneWireTests.swift
        FJ-26 change FlamingJuneRequestTests.swift
        FJ-27 keep   FlamingJuneMappedViewTests.swift
        FJ-28 keep   RelatedViewTests.swift
        FJ-29 keep   FlamingJuneMappedViewTests.swift
        FJ-30 change FlamingJuneMappedViewTests.swift
        FJ-31 keep   FlamingJuneMappedViewTests.swift
        FJ-32 change FlamingJuneMappedViewTests.swift
        FJ-33 change FlamingJuneMappedViewTests.swift
        FJ-34 keep   FlamingJuneRequestTests.swift
        FJ-35 change MappingStoreTests.swift
        FJ-36 keep   FlamingJuneRequestTests.swift
        FJ-37 change MappingStoreTests.swift
        FJ-38 change FlamingJuneRequestTests.swift
        FJ-39 change FlamingJuneRequestTests.swift
        FJ-40 keep   FlamingJuneRequestTests.swift
        FJ-41 keep   FlamingJuneRequestTests.swift
        FJ-42 change FlamingJuneRequestTests.swift
        FJ-43 change FlamingJuneRequestTests.swift
        FJ-44 keep   FlamingJuneRequestTests.swift
        FJ-45 change FlamingJuneRequestTests.swift
        FJ-46 change FlamingJuneRequestTests.swift
        FJ-47 keep   FlamingJuneRequestTests.swift
        OV-01 keep   RouteTableTests.swift
        OV-02 keep   RouteTableTests.swift
        OV-03 keep   RouteTableTests.swift
        OV-04 keep   RouteTableTests.swift
        OV-05 keep   RouteTableTests.swift
        OV-06 keep   RouteTableTests.swift
        OV-07 keep   RouteTableTests.swift
        OV-08 keep   RouteTableTests.swift
        OV-09 keep   OvercoatRequestTests.swift
        OV-10 keep   RouteTableTests.swift
        OV-11 keep   RouteTableTests.swift
        OV-12 keep   RouteTableTests.swift
        OV-13 keep   RouteTableTests.swift
        OV-14 keep   RouteTableTests.swift
        OV-15 keep   RouteTableTests.swift
        OV-16 keep   RouteTableTests.swift
        OV-17 change RouteTableTests.swift
        OV-18 change RouteTableTests.swift
        OV-19 keep   RouteTableTests.swift
        OV-20 change OvercoatRequestTests.swift
        OV-21 change OvercoatRequestTests.swift
        OV-22 keep   OvercoatRequestTests.swift
        OV-23 change RouteTableTests.swift
        OV-24 keep   RouteTableTests.swift
        OV-25 keep   RouteTableTests.swift
        OV-26 keep   RouteTableTests.swift
        OV-27 keep   RouteTableTests.swift
        OV-28 keep   RouteTableTests.swift
        OV-29 change OvercoatRequestTests.swift
        OV-30 keep   RouteTableTests.swift
        OV-31 keep   OvercoatRequestTests.swift
        OV-32 keep   OvercoatRequestTests.swift
        OV-33 change RouteTableTests.swift
        OV-34 keep   OvercoatRequestTests.swift
        OV-35 keep   OvercoatMappedViewTests.swift
        OV-36 change OvercoatMappedViewTests.swift
        OV-37 keep   OvercoatMappedViewTests.swift
        OV-38 keep   OvercoatMappedViewTests.swift
        OV-39 change OvercoatMappedViewTests.swift
        OV-40 change MappingAgreementTests.swift
        OV-41 change OvercoatMappedViewTests.swift
        OV-42 keep   OvercoatRequestTests.swift
        OV-43 keep   OvercoatRequestTests.swift
        OV-44 keep   OvercoatRequestTests.swift
        OV-45 keep   OvercoatRequestTests.swift
        OV-46 keep   OvercoatRequestTests.swift
        OV-47 keep   OvercoatMappedViewTests.swift
        OV-48 change OvercoatMappedViewTests.swift
        MK-01 keep   MilkMappedViewTests.swift
        MK-02 keep   MappingAgreementTests.swift
        MK-03 own    MilkMappedViewTests.swift
        MK-04 keep   MilkMappedViewTests.swift
        MK-05 keep   MilkMappedViewTests.swift
        MK-06 keep   MilkMappedViewTests.swift
        MK-07 own    MilkMappedViewTests.swift
        MK-08 own    MilkMappedViewTests.swift
        MK-09 own    MilkMappedViewTests.swift
        MK-10 own    MilkMappedViewTests.swift
        MK-11 keep   MilkMappedViewTests.swift
        MK-12 keep   FlamingJuneRequestTests.swift
        MK-13 keep   FlamingJuneRequestTests.swift
        MK-14 keep   MilkMappedViewTests.swift
        MK-15 keep   MilkMappedViewTests.swift
        MK-16 own    MilkMappedViewTests.swift
        MK-17 keep   MappingAgreementTests.swift
        MK-18 change MilkMappedViewTests.swift
        MT-01 keep   MantleMappedViewTests.swift
        MT-02 keep   MantleMappedViewTests.swift
        MT-03 keep   MantleMappedViewTests.swift
        MT-04 change MantleMappedViewTests.swift
        MT-05 change MantleMappedViewTests.swift
        MT-06 keep   MantleMappedViewTests.swift
        MT-07 change MantleMappedViewTests.swift
        MT-08 change MantleMappedViewTests.swift
        MT-09 own    MantleMappedViewTests.swift
        MT-10 keep   MantleMappedViewTests.swift
        MT-11 keep   MantleMappedViewTests.swift
        MT-12 keep   MantleMappedViewTests.swift
        MT-13 keep   MantleMappedConversionsTests.swift
        MT-14 keep   MantleMappedConversionsTests.swift
        MT-15 keep   MantleMappedConversionsTests.swift
        MT-16 keep   MantleMappedViewTests.swift
        MT-17 keep   MantleMappedViewTests.swift
        MT-18 keep   MantleMappedViewTests.swift
        MT-19 keep   MantleMappedViewTests.swift
        MT-20 keep   MantleMappedRelationsTests.swift
        MT-21 keep   MantleMappedRelationsTests.swift
        MT-22 keep   MantleMappedRelationsTests.swift
        MT-23 keep   MantleMappedRelationsTests.swift
        MT-24 keep   MantleMappedRelationsTests.swift
        MT-25 change MantleMappedRelationsTests.swift
        MT-26 change MantleMappedRelationsTests.swift
        MT-27 change MantleMappedRelationsTests.swift
        MT-28 change MantleMappedRelationsTests.swift
        MT-29 keep   MantleMappedRelationsTests.swift
        MT-30 keep   MantleMappedViewTests.swift
        MT-31 change MantleMappedViewTests.swift
        MT-32 keep   MantleMappedViewTests.swift
        MT-33 change MantleMappedViewTests.swift
        MT-34 keep   MantleMappedViewTests.swift
        MT-35 keep   MantleMappedConversionsTests.swift
        MT-36 keep   MantleMappedConversionsTests.swift
        MT-37 keep   MantleMappedConversionsTests.swift
        MT-38 keep   MantleMappedConversionsTests.swift
        MT-39 keep   MantleMappedViewTests.swift; PATCH bodies: later
        MT-40 change MantleMappedViewTests.swift
        MT-41 change MantleMappedViewTests.swift
        MT-42 change MantleMappedViewTests.swift
        MT-43 keep   FlamingJuneRequestTests.swift
        MT-44 keep   FlamingJuneRequestTests.swift
        MT-45 change MantleMappedViewTests.swift
        MT-46 change MantleMappedViewTests.swift
        MT-47 change MantleMappedViewTests.swift
        MT-48 keep   MantleWireTests.swift
        MT-49 change MantleWireTests.swift
        MT-50 keep   MantleWireTests.swift
        MT-51 keep   MantleWireTests.swift
        MT-52 keep   MantleWireTests.swift
        MT-53 keep   MappingRelationStoreTests.swift
        MT-54 keep   MantleWireTests.swift
        MT-55 keep   MappingModelStoreTests.swift
        MT-56 keep   MappingModelStoreTests.swift
        MT-57 keep   MantleWireTests.swift
        MT-58 keep   MantleMappedRelationsTests.swift
        MT-59 keep   MantleMappedViewTests.swift
        MT-60 keep   ConfigIncludeTests.swift
        MA-01 keep   MantleWireTests.swift
        MA-02 keep   MantleWireTests.swift
        MA-03 keep   MantleWireTests.swift
        MA-04 keep   MantleWireTests.swift
        MA-05 change MantleWireTests.swift
        MA-06 change MantleWireTests.swift
        MA-07 change MantleWireTests.swift
        MA-08 keep   MantleWireTests.swift
        MA-09 keep   MantleWireTests.swift
        RK-01 keep   MantleMappedViewTests.swift
        RK-02 keep   FlamingJuneRequestTests.swift
        RK-03 keep   RestKitMappedViewTests.swift
        RK-04 change RestKitMappedViewTests.swift
        RK-05 own    RestKitMappedViewTests.swift
        RK-06 keep   RestKitMappedViewTests.swift
        RK-07 change MantleMappedRelationsTests.swift
        RK-08 keep   RestKitMappedViewTests.swift
        RK-09 own    RestKitMappedViewTests.swift
        RK-10 own    RestKitMappedViewTests.swift
        RK-11 keep   RestKitMappedViewTests.swift
        RK-12 own    MantleMappedConversionsTests.swift
        RK-13 keep   RestKitMappedViewTests.swift
        RK-14 keep   RestKitMappedViewTests.swift
        RK-15 keep   RestKitMappedViewTests.swift
        RK-16 keep   RestKitWireTests.swift
        RK-17 own    MappingRelationStoreTests.swift
        RK-18 keep   RestKitMappedViewTests.swift
        RK-19 keep   RestKitMappedViewTests.swift
        RK-20 keep   RestKitWireTests.swift
        RK-21 keep   RestKitWireTests.swift
        RK-22 change RestKitWireTests.swift
        RK-23 keep   RestKitWireTests.swift
        RK-24 keep   RestKitWireTests.swift
        RK-25 keep   RestKitWireTests.swift
        RK-26 keep   RestKitWireTests.swift
        RK-27 keep   RestKitWireTests.swift
        RK-28 keep   RestKitWireTests.swift
        RK-29 keep   RestKitWireTests.swift
        RK-30 keep   FlamingJuneRequestTests.swift; the proof: later
        RK-31 keep   DeletionTests.swift
        RK-32 keep   FlamingJuneRequestTests.swift
        RK-33 keep   RestKitWireTests.swift
        RK-34 change RestKitWireTests.swift
        RK-35 own    RestKitWireTests.swift
        RK-36 keep   OvercoatRequestTests.swift
        RK-37 own    RouteTableTests.swift
        RK-38 keep   RouteTableTests.swift
        RK-39 keep   later
        NZ-01 keep   NormalizrWireTests.swift
        NZ-02 keep   NormalizrWireTests.swift
        NZ-03 keep   RestKitMappedViewTests.swift
        NZ-04 change NormalizrWireTests.swift
        NZ-05 keep   RestKitMappedViewTests.swift
        NZ-06 keep   MantleMappedRelationsTests.swift
        NZ-07 keep   RestKitMappedViewTests.swift
        """
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
