@testable import Store
import Testing
