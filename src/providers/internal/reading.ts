/** The parts that protocols share in reading answers: failures, token counts, probabilities, stop reasons and refusals. */
import { Protocol, type Reason } from "../../ProviderError.ts"
import { inBand, inText } from "../../http/VendorFailure.ts"
import * as VendorText from "../../http/VendorText.ts"
import * as Json from "./json.ts"

export { inText, ofErrorEvent, ofResponse } from "../../http/VendorFailure.ts"
import type { StopReason } from "../../Message.ts"
import type { Logprob, Refusal } from "../../ModelEvent.ts"
import type { Usage } from "../../Usage.ts"
import type { ReplyWriter } from "../../reply/ReplyWriter.ts"

/**
 * The failure for data that is not an event of the protocol. The message contains only a short part of it,
 * because it may be half an answer.
 */
const badJson = (data: string): Reason =>
  new Protocol({
    kind: "badJson",
    detail: `${VendorText.cut(Json.problem(data), 200)}: ${VendorText.cut(data, 200)}`
  })

export const badShape = (problem: string, data: string): Reason =>
  new Protocol({ kind: "badShape", detail: `${problem}: ${VendorText.cut(data, 200)}` })

/** The object in an event of the protocol. `what` is the noun for one: `an event`. */
export const objectIn = (data: string, what: string): Json.JsonObject | Reason => {
  const json = Json.parse(data)
  if (json === undefined) return inText(data, "") ?? badJson(data)
  return Json.isObject(json) ? json : badShape(`Not ${what}`, data)
}

/** The object in an event, or the failure that it reports. */
export const eventIn = (data: string, model: string, what: string): Json.JsonObject | Reason => {
  const json = objectIn(data, what)
  return json instanceof Error ? json : (inBand(json, data, model) ?? json)
}

/** The words of a reason, `undefined` for anything that could be encoded. */
export const detailIn = <A>(encoded: A | Reason): string | undefined =>
  encoded instanceof Error ? encoded.detail : undefined

// ───────────────────────── Counts

// Token counts and costs of a server. Implausible values count as missing, so that sums and limits stay correct.

/** An integer from 0 to 1e12, `undefined` for anything else. */
export const tokens = (json: Json.Json | undefined): number | undefined => {
  const count = Json.number(json)
  return count !== undefined && Number.isInteger(count) && count >= 0 && count <= 1e12 ? count : undefined
}

/** The first of these members that is a count. */
export const first = (
  counts: Json.JsonObject | undefined,
  ...names: ReadonlyArray<string>
): number | undefined => {
  for (const name of names) {
    const count = tokens(counts?.[name])
    if (count !== undefined) return count
  }
  return undefined
}

/** The tokens of audio, where there are some. */
export const audio = (
  input: number | undefined = 0,
  output: number | undefined = 0
): Pick<Usage, "inputAudio" | "outputAudio"> => ({
  ...(input === 0 ? {} : { inputAudio: input }),
  ...(output === 0 ? {} : { outputAudio: output })
})

/** The calls of tools of the vendor, from `{ web_search_requests: 2 }` or `{ web_search: { num_requests: 2 } }`. */
export const hostedToolCalls = (json: Json.Json | undefined): Pick<Usage, "hostedToolCalls"> => {
  const counts = Object.entries(Json.object(json) ?? {}).flatMap(([name, value]) => {
    const count = tokens(Json.object(value)?.["num_requests"] ?? value) ?? 0
    return count === 0 ? [] : [[name.replace(/_(?:requests|calls)$/, ""), count] as const]
  })
  return counts.length === 0 ? {} : { hostedToolCalls: Object.fromEntries(counts) }
}

/** A number from 0 to 1e9, `undefined` for anything else. */
export const cost = (json: Json.Json | undefined): number | undefined => {
  const amount = Json.number(json)
  return amount !== undefined && amount >= 0 && amount <= 1e9 ? amount : undefined
}

// ───────────────────────── Probabilities of tokens

// The probabilities of tokens, as both APIs of OpenAI send them.

/** The tokens of a list that have a probability. */
export const logprobsOf = (list: Json.Json | undefined): ReadonlyArray<Logprob> =>
  Json.array(list).flatMap((item) => {
    const token = tokenOf(item)
    if (token === undefined) return []
    const top = Json.array(Json.object(item)?.["top_logprobs"]).flatMap((other) => tokenOf(other) ?? [])
    return [top.length === 0 ? token : { ...token, top }]
  })

const tokenOf = (item: Json.Json): Pick<Logprob, "token" | "logprob"> | undefined => {
  const { logprob, token } = Json.object(item) ?? {}
  return typeof token === "string" && typeof logprob === "number" && Number.isFinite(logprob)
    ? { token, logprob }
    : undefined
}

// ───────────────────────── Stop reasons

// The words with which servers say why an answer ended.

/** Whether the server or its model broke the answer off, so that it is none. */
export const isFailure = (word: string): boolean => /abort|cancel|error|fail|malformed|time_?out/i.test(word)

/** The stop reason that a word means. An unknown word counts as a normal end. */
export const of = (word: string): StopReason => words.get(word.toLowerCase()) ?? "stop"

/** As `of`, at the end of an answer: its `unrepresented` then names an unknown word. Anything but a short word may hold a secret. */
export const noted = (word: string, reply: ReplyWriter): StopReason => {
  if (!words.has(word.toLowerCase()))
    reply.note(/^[a-z_]{1,40}$/i.test(word) ? `the stop reason "${word}"` : "an unknown stop reason")
  return of(word)
}

const meaning =
  (reason: StopReason) =>
  (word: string): readonly [string, StopReason] => [word, reason]

const words: ReadonlyMap<string, StopReason> = new Map([
  ...["stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "done", "end"].map(
    meaning("stop")
  ),
  ...["pause_turn", "compaction"].map(meaning("stop")),
  ...["tool_calls", "tool_call", "function_call", "tool_use"].map(meaning("toolUse")),
  ...["length", "max_tokens", "model_length", "model_context_window_exceeded"].map(meaning("length")),
  ...["content_filter", "content_filtered", "guardrail_intervened", "sensitive"].map(
    meaning("contentFilter")
  ),
  ["refusal", "refusal"]
])

// ───────────────────────── Refusals

// Why Claude refused to answer: https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback

/** Reads `stop_details`, which is `null` for answers that are no refusals. */
export const refusalIn = (details: Json.Json | undefined): { readonly refusal?: Refusal } => {
  const { category, explanation, recommended_model } = Json.object(details) ?? {}
  const refusal: Refusal = {
    ...(typeof category === "string" ? { category } : {}),
    ...(typeof explanation === "string" ? { explanation } : {}),
    ...(typeof recommended_model === "string" ? { recommendedModel: recommended_model } : {})
  }
  return Object.keys(refusal).length === 0 ? {} : { refusal }
}
