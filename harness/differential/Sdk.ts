/**
 * What the vendors' own libraries make of an answer. Each reads the stream by itself; here its result is but put in words
 * that are the same for all.
 */
import Anthropic from "@anthropic-ai/sdk"
import { type FinishReason, type GenerateContentResponse, GoogleGenAI } from "@google/genai"
import type { Message } from "effect-agent"
import OpenAI from "openai"
import type { Said } from "./streams/Fixture.ts"

/** Where, and with which key. `origin` has no path. */
export interface Address {
  readonly origin: string
  readonly apiKey: string
  readonly model: string
}

const hi = [{ role: "user" as const, content: "Hi" }]

export const openAiChat = async ({ apiKey, model, origin }: Address): Promise<Said> => {
  const client = new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries: 0 })
  const stream = client.chat.completions.stream({
    model,
    messages: hi,
    stream_options: { include_usage: true }
  })
  const { choices, usage } = await stream.finalChatCompletion()
  const [choice] = choices
  const refusal = choice?.message.refusal ?? ""
  return {
    text: (choice?.message.content ?? "") + refusal,
    // OpenAI shows none in this language.
    thinking: "",
    calls: (choice?.message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      params: JSON.parse(call.function.arguments === "" ? "{}" : call.function.arguments)
    })),
    stopReason: refusal === "" ? stopReason(choice?.finish_reason) : "refusal",
    usage: {
      input: usage?.prompt_tokens ?? -1,
      output: usage?.completion_tokens ?? -1,
      cacheRead: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      cacheWrite: 0
    }
  }
}

export const openAiResponses = async ({ apiKey, model, origin }: Address): Promise<Said> => {
  const client = new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries: 0 })
  const { incomplete_details, output, usage } = await client.responses
    .stream({ model, input: "Hi" })
    .finalResponse()
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []))
  const calls = output.flatMap((item) =>
    item.type === "function_call"
      ? [{ id: item.call_id, name: item.name, params: JSON.parse(item.arguments) }]
      : []
  )
  const isRefusal = parts.some(({ type }) => type === "refusal")
  return {
    text: parts.map((part) => (part.type === "refusal" ? part.refusal : part.text)).join(""),
    thinking: output
      .flatMap((item) => (item.type === "reasoning" ? item.summary.map(({ text }) => text) : []))
      .join(""),
    calls,
    stopReason: stopReason(
      incomplete_details?.reason ?? (calls.length > 0 ? "tool_calls" : isRefusal ? "refusal" : "stop")
    ),
    usage: {
      input: usage?.input_tokens ?? -1,
      output: usage?.output_tokens ?? -1,
      cacheRead: usage?.input_tokens_details.cached_tokens ?? 0,
      cacheWrite: 0
    }
  }
}

export const anthropic = async ({ apiKey, model, origin }: Address): Promise<Said> => {
  const client = new Anthropic({ apiKey, baseURL: origin, maxRetries: 0 })
  const stream = client.messages.stream({ model, max_tokens: 100, messages: hi })
  const { content, stop_reason, usage } = await stream.finalMessage()
  const cacheRead = usage.cache_read_input_tokens ?? 0
  const cacheWrite = usage.cache_creation_input_tokens ?? 0
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    thinking: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
    calls: content.flatMap((block) =>
      block.type === "tool_use" ? [{ id: block.id, name: block.name, params: block.input }] : []
    ),
    stopReason: stopReason(stop_reason),
    usage: {
      input: usage.input_tokens + cacheRead + cacheWrite,
      output: usage.output_tokens,
      cacheRead,
      cacheWrite
    }
  }
}

export const google = async ({ apiKey, model, origin }: Address): Promise<Said> => {
  const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin } })
  const chunks: Array<GenerateContentResponse> = []
  for await (const chunk of await client.models.generateContentStream({ model, contents: "Hi" }))
    chunks.push(chunk)
  const parts = chunks.flatMap((chunk) => chunk.candidates?.[0]?.content?.parts ?? [])
  const prose = (isThought: boolean) =>
    parts.map(({ text = "", thought = false }) => (thought === isThought ? text : "")).join("")
  const calls = chunks.flatMap((chunk) => chunk.functionCalls ?? [])
  const finish: FinishReason | undefined = chunks.at(-1)?.candidates?.[0]?.finishReason
  const usage = chunks.at(-1)?.usageMetadata
  return {
    text: prose(false),
    thinking: prose(true),
    calls: calls.map(({ args, id = "", name = "" }) => ({ id, name, params: args })),
    stopReason: finish === "STOP" && calls.length > 0 ? "toolUse" : stopReason(finish),
    usage: {
      input: usage?.promptTokenCount ?? -1,
      output: (usage?.candidatesTokenCount ?? -1) + (usage?.thoughtsTokenCount ?? 0),
      cacheRead: usage?.cachedContentTokenCount ?? 0,
      cacheWrite: 0
    }
  }
}

const stopReason = (word: string | null | undefined): Message.StopReason =>
  stopReasons.get(word ?? "") ?? "error"

/** The words of all four. */
const stopReasons: ReadonlyMap<string, Message.StopReason> = new Map([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["STOP", "stop"],
  ["tool_calls", "toolUse"],
  ["tool_use", "toolUse"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["max_output_tokens", "length"],
  ["MAX_TOKENS", "length"],
  ["content_filter", "contentFilter"],
  ["SAFETY", "contentFilter"],
  ["refusal", "refusal"]
])
