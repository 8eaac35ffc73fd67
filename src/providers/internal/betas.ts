/** Names of betas, which the application gives among the members of the body, as the vendor takes them. */
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest } from "../../ProviderError.ts"
import type { Given, Protocol } from "../Protocol.ts"
import * as Json from "./json.ts"

/** Takes `betas` out of the members of the body. Fails for betas that are no texts. */
export const apart = (put: Protocol["betas"], given: Given): Given | Reason => {
  const { betas, ...vendor } = given.vendor
  if (betas === undefined || put === undefined) return given
  const all = Json.isArray(betas) ? betas : [betas]
  const names = all.filter(isName)
  return names.length === all.length
    ? put(names, { ...given, vendor })
    : new InvalidRequest({
        detail: `vendor holds betas as a list of texts; got ${JSON.stringify(betas).slice(0, 60)}`
      })
}

/** Puts the names of betas into a header. */
export const inHeader =
  (header: string): NonNullable<Protocol["betas"]> =>
  (names, { headers, vendor }) => ({
    vendor,
    headers: { ...headers, [header]: [headers[header] ?? "", ...names].filter(Boolean).join(",") }
  })

const isName = (name: Json.Json): name is string => typeof name === "string" && name !== ""
