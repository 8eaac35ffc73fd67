/** The first event of an answer. */
import type { ModelEvent } from "../../ModelEvent.ts"
import type { Call } from "../Protocol.ts"

/** The names that a server gives an answer. */
export interface Named {
  /** The id of the answer, `undefined` if the server sends none. */
  responseId: string | undefined
  /** The id of the model that answered, `undefined` if the server sends none. */
  responseModel: string | undefined
}

/** The first event of an answer. Leaves out a model that has the id of the request. */
export const startOf = (
  { call, provider, responseId, responseModel }: Named & { readonly call: Call; readonly provider: string },
  protocol: string
): ModelEvent => ({
  _tag: "Start",
  provider,
  model: call.model,
  protocol,
  ...(responseId === undefined ? {} : { responseId }),
  ...(responseModel === undefined || responseModel === call.model ? {} : { responseModel }),
  ...(call.adjusted === undefined || call.adjusted.length === 0 ? {} : { adjusted: call.adjusted })
})
