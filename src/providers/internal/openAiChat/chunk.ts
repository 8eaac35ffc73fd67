/** Reads the chunks of OpenAI Chat Completions: https://platform.openai.com/docs/api-reference/chat-streaming */
import type { Reason } from "../../../ProviderError.ts"
import * as Failure from "../failure.ts"
import * as Json from "../json.ts"
import { isReason } from "../../Protocol.ts"

/** The relevant parts of a chunk: the first choice, and the usage. */
export interface Chunk {
  readonly json: Json.JsonObject
  readonly choice: Json.JsonObject | undefined
  readonly id: string | undefined
  readonly model: string | undefined
  readonly delta: Json.JsonObject | undefined
  /** The message of a chunk whose delta is empty. */
  readonly message: Json.JsonObject | undefined
  readonly finish: string | undefined
  readonly usage: Json.JsonObject | undefined
}

/** The chunk of an event, or the reason if the event reports a failure or is no chunk. */
export const readChunk = (data: string, model: string): Chunk | Reason => {
  const json = Failure.eventIn(data, model, "a chunk")
  if (isReason(json)) return json
  const choice = Json.firstAnswer(json["choices"])
  const [delta, message] = [Json.object(choice?.["delta"]), Json.object(choice?.["message"])]
  const own = delta ?? message
  if (own !== undefined && !isReadable(own)) return Failure.badShape("Not a delta", data)
  return {
    json,
    choice,
    id: Json.text(json["id"]),
    model: Json.text(json["model"]),
    // A complete answer has a message instead of a delta. Some servers send both.
    delta: own,
    message: delta === undefined || message === undefined || !isReadable(message) ? undefined : message,
    finish: Json.text(choice?.["finish_reason"]),
    usage: usageIn(json, choice)
  }
}

/** Groq and Moonshot send the usage in other places. */
const usageIn = (
  { usage, x_groq: groq }: Json.JsonObject,
  choice: Json.JsonObject | undefined
): Json.JsonObject | undefined => {
  const elsewhere = groq === undefined ? undefined : Json.object(groq)?.["usage"]
  return Json.object(usage ?? elsewhere ?? choice?.["usage"])
}

/** Whether decoding the delta loses nothing. */
const isReadable = ({ content, tool_calls: calls }: Json.JsonObject): boolean =>
  (content === undefined || content === null || typeof content === "string" || typeof content === "object") &&
  (calls === undefined || calls === null || typeof calls === "object")
