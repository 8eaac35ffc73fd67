/** Reads the chunks of an answer: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse */
import type { Reason } from "../../../ProviderError.ts"
import * as Failure from "../failure.ts"
import * as Json from "../json.ts"
import { isReason } from "../../Protocol.ts"

/** The first candidate of a chunk, the reason why Google blocked the prompt, and the usage. */
export interface Chunk {
  readonly responseId: string | undefined
  readonly responseModel: string | undefined
  readonly candidate: Json.JsonObject | undefined
  readonly parts: ReadonlyArray<Json.Json>
  readonly finish: string | undefined
  readonly blocked: Json.JsonObject | undefined
  readonly usage: Json.JsonObject | undefined
}

export const read = (data: string, model: string): Chunk | Reason => {
  const chunk = Failure.eventIn(data, model, "a chunk")
  if (isReason(chunk)) return chunk
  const { candidates, modelVersion, promptFeedback, responseId, usageMetadata } = chunk
  const candidate = Json.firstAnswer(candidates)
  const content = candidate?.["content"]
  const parts = Json.object(content)?.["parts"]
  if (!isAbsentOr(candidates, Json.isArray)) return Failure.badShape("Not a list of candidates", data)
  if (!isAbsentOr(content, Json.isObject) || !isAbsentOr(parts, Json.isArray)) {
    return Failure.badShape("Not a content", data)
  }
  const feedback = Json.object(promptFeedback)
  return {
    responseId: Json.text(responseId),
    responseModel: Json.text(modelVersion),
    candidate,
    parts: Json.array(parts),
    finish: Json.text(candidate?.["finishReason"]),
    blocked: Json.text(feedback?.["blockReason"]) === undefined ? undefined : feedback,
    usage: Json.object(usageMetadata)
  }
}

const isAbsentOr = (json: Json.Json | undefined, is: (json: Json.Json | undefined) => boolean): boolean =>
  json === undefined || json === null || is(json)
