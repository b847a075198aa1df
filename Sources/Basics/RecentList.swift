/// The last elements of a series, in their order: at the limit, each new one takes the place of the first.
public struct RecentList<Element>: RandomAccessCollection {
    @usableFromInline var ring: [Element] = []
    /// Where the first element is; 0 until the limit is reached.
    @usableFromInline var start = 0
    @usableFromInline let limit: Int

    /// Creates a list of at most `limit` elements, one or more.
    @inlinable public init(limit: Int) { self.limit = limit }

    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { ring.count }

    @inlinable
    public subscript(position: Int) -> Element {
        precondition(indices.contains(position), "there is no such element")
        return ring[(start + position) % ring.count]
    }

    /// Adds an element at the end.
    @inlinable
    public mutating func append(_ element: Element) {
        guard ring.count == limit else { return ring.append(element) }
        ring[start] = element
        start = (start + 1) % limit
    }

    /// Removes the elements for which a condition holds.
    @inlinable
    public mutating func removeAll(where isRemoved: (Element) -> Bool) {
        if contains(where: isRemoved) { (ring, start) = (filter { !isRemoved($0) }, 0) }
    }
}

extension RecentList: Sendable where Element: Sendable {}
