/**
 * The headers of a response, as events have them.
 */
import * as VendorKeys from "./vendorKeys.ts"

type Headers = Readonly<Record<string, string>>

/** Returns the headers by names in lower case, without those that may be secret. */
export const shown = (headers: Headers | undefined): Headers =>
  Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      secret.test(name) ? [] : [[name.toLowerCase(), VendorKeys.cutOut(value)]]
    )
  )

// Headers of rate limits speak of tokens.
const secret = /cookie|authori[sz]ation|authenticat|api[-_]?key|token(?!s)|secret|session|csrf/i
