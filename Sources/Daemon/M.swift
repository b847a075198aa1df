import ArgumentParser
import CCrypto
import CCurl
import CEvent
import Glibc
import Logging
import StructuredFieldValues
import Yams

@main struct Main {
    static func main() { print(String(cString: event_get_version()), String(cString: curl_version())) }
}
