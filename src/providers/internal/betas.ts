/** Names of betas, which the application gives among the members of the body, as the vendor takes them. */
import type { Reason } from "../../ProviderError.ts"
import { InvalidRequest } from "../../ProviderError.ts"
import type { Endpoint } from "./models/rule.ts"
import * as Json from "./json.ts"
import { merge, type Question } from "./question.ts"
import { apis } from "./support.ts"

/** The members of the body, and the headers of the application. */
export type Given = Pick<Question, "headers" | "vendor">

/** Takes `betas` out of the members of the body. Fails for betas that are no texts. */
export const apart = (endpoint: Endpoint | undefined, given: Given): Given | Reason => {
  const { betas, ...vendor } = given.vendor
  const api = endpoint === undefined ? undefined : apis[endpoint]
  if (betas === undefined || api?.betas === undefined) return given
  const names = Json.isArray(betas) ? betas : [betas]
  if (!names.every((name) => typeof name === "string" && name !== ""))
    return new InvalidRequest({
      detail: `vendor holds betas as a list of texts; got ${JSON.stringify(betas).slice(0, 60)}`
    })
  if (api.betas === "additionalModelRequestFields")
    return { ...given, vendor: merge({ [api.betas]: { anthropic_beta: names } }, vendor) }
  const { [api.betas]: before = "" } = given.headers
  return { vendor, headers: { ...given.headers, [api.betas]: [before, ...names].filter(Boolean).join(",") } }
}
