import Testing

@testable import HTTPSemantics

/// Names whose values decide whether they are credentials; docs/http-reference.md has the table.
@Suite struct WeighedNameTests {
    private static func isCredential(_ name: String, _ value: String, beside names: [String]) -> Bool {
        let company = Company(names.map { Array($0.utf8) })
        return WeighedName(Array(name.utf8))?.isCredential(Array(value.utf8), beside: company) ?? false
    }

    @Test(arguments: [
        "SplxlOBeZQQYbYS6WxSbIA", "SplxlOBeZQQYbYSWxSbIA", "abc123def4", "a1b2c3d4e5f60718293a",
        "4/0AX4XfWhabcdef12345",
        "550e8400-e29b-41d4-a716-446655440000", "abcdefghijklmnopqrst", "ac_Hx9qWb3LmNpRsT0v", "REDACTED",
        "REDACTED-12",
    ])
    func `OAuth's codes are recognised beside its parameters`(_ value: String) {
        #expect(Self.isCredential("code", value, beside: ["state"]))
        #expect(Self.isCredential("Code", value, beside: ["a", "redirectUri"]))
        #expect(!Self.isCredential("code", value, beside: ["country"]))
    }

    @Test(arguments: [
        "DE", "CA", "404", "1234567890123456", "94105-1234", "SW1A 1AA", "en-US", "zh-Hant-TW", "SUMMER2024",
        "WELCOME-10", "united-states-of-america", "UnitedStatesOfAmerica", "ERR_INSUFFICIENT_PERMISSIONS", "B07XJ8C8F5",
        "ABCD-1234-EFGH-5678", "DEUTDEFF500", "US0378331005", "v1.2.3-rc1", "2026-11-26", "E11.9", "internal error",
        "NotFoundError", "8471.30.01",
    ])
    func `codes such as country codes are no credentials, whatever is beside them`(_ value: String) {
        #expect(!Self.isCredential("code", value, beside: ["state", "client_id", "redirect_uri", "client_secret"]))
        #expect(!Self.isCredential("ticket", value, beside: ["service"]))
        #expect(Self.isCredential("code", value, beside: ["grant_type"]))
    }

    @Test func `tickets of CAS are recognised`() {
        #expect(Self.isCredential("ticket", "ST-1856339-aA5Yuvrxzpv8Tau1cYQ7", beside: []))
        #expect(Self.isCredential("ticket", "PT-1-aA5Yuvrx-host.example", beside: ["pgtUrl"]))
        #expect(Self.isCredential("ticket", "ST-1-abc", beside: ["service"]))
        #expect(!Self.isCredential("ticket", "ST-123", beside: ["service"]))
        #expect(!Self.isCredential("ticket", "ST-123-fix", beside: []))
    }

    @Test func `a member named pin is secret beside a person's members, not beside a place's`() {
        for name in ["pin", "PIN", "new_pin", "cardPin", "cvv"] {
            #expect(Self.isCredential(name, "4821", beside: ["user"]), "\(name)")
        }
        for name in ["spin", "mapping", "pinned", "pin_code"] {
            #expect(WeighedName(Array(name.utf8)) == nil, "\(name)")
        }
        #expect(!Self.isCredential("pin", "560001", beside: ["city"]))
        #expect(!Self.isCredential("pin", "true", beside: ["user"]))
        #expect(WeighedName.pin.isCredential(Array("4821".utf8), beside: .body))
        #expect(!WeighedName.pin.isCredential(Array("560001".utf8), beside: [.body, Company(Array("state".utf8))]))
    }

    @Test func `the private members of a JSON Web Key are secrets`() {
        let value = "X4cTteJY_gn4FYPsXB8rdXix5vwsg1FLN5E3EaG6RJo"
        #expect(Self.isCredential("d", value, beside: ["kty", "n", "e"]))
        #expect(!Self.isCredential("d", value, beside: ["n"]))
        #expect(!Self.isCredential("k", "10", beside: ["kty"]))
    }
}
