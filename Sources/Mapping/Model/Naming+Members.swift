extension Naming {
    /// The members that a property is read from where no key path is given, the preferred one last.
    ///
    /// What is spelled exactly as the property wins over what is derived from it (Milk).
    func members(for property: String) -> [String] { MemberNaming(self).members(for: property).reversed() }
}
