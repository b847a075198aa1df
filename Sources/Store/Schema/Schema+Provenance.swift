extension Schema {
    /// Where an observation comes from, for those of which no document tells; NULL nearly always, which costs a byte a row.
    static let provenance = """
        -- source: method and URL, such as "PATCH /users/1", of an answer that is no document, or whose document is gone.
        -- Of all others the document knows: documents are in the order of their observations.
        ALTER TABLE _observations ADD COLUMN source TEXT;
        """
}
