/**
 * Conversations, and the body that each API must receive of them. Every `DIR/<api>/<case>.json` holds one in words of no
 * vendor: it is sent through the public provider of its API to a server that keeps the body and answers nothing, and
 * `grade-request.mjs`, which lies beside the folder, judges the body.
 *
 * A conversation with calls that have no result, or results without a call, is repaired first, as the loop does.
 */
import { Effect, type Layer, Redacted, Result, type Schema, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Message, Provider, Transcript } from "effect-agent"
import { AmazonBedrock, Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { refuse, serve } from "../../test/providers/server.ts"
import type { Kind } from "./suite.ts"
import { defined, type Words } from "./words.ts"

export const kind: Kind = async (dir) => {
  const { gradeRequest }: Words = await import(pathToFileURL(join(dir, "..", "grade-request.mjs")).href)
  const folders = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const cases = folders.flatMap(({ name: api }) =>
    readdirSync(join(dir, api))
      .filter((file) => file.endsWith(".json"))
      .map((file) => ({ api, file }))
  )
  return {
    concurrency: 4,
    skipped: cases.filter(({ api }) => apis[api] === undefined).map(({ api, file }) => `${api}/${file}`),
    cases: cases.flatMap(({ api, file }) => {
      const vendor = apis[api]
      if (vendor === undefined) return []
      const words: Words = JSON.parse(readFileSync(join(dir, api, file), "utf8"))
      return [
        { name: `${api}/${file.replace(/\.json$/, "")}`, run: () => judge(vendor, words, gradeRequest) }
      ]
    })
  }
}

const judge = (vendor: Vendor, words: Words, gradeRequest: Words) =>
  Effect.runPromise(
    Effect.map(capture(vendor, words), (sent) =>
      Result.isFailure(sent)
        ? { problems: [`nothing was sent: ${sent.failure}`], actual: undefined }
        : { problems: gradeRequest(words, sent.success), actual: sent.success }
    )
  )

/** The body that the provider sends for a conversation, or why it sends none. */
const capture = (vendor: Vendor, words: Words) =>
  Effect.gen(function* () {
    const server = yield* serve((response) => refuse(response, 501, { error: { message: "captured" } }))
    const provider = yield* Effect.provide(Provider.Provider, vendor.layer(server.baseUrl, words))
    const failure = yield* Effect.flip(Stream.runDrain(provider.stream(toRequest(vendor, words))))
    const [seen] = server.requests
    return seen === undefined ? Result.fail(failure.message) : Result.succeed<Words>(JSON.parse(seen.body))
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer), Effect.orDie)

// ───────────────────────── The APIs

type Opaque = Schema.Json

export interface Vendor {
  /** Names the provider in messages, and in what it is given back. */
  readonly id: string
  readonly layer: (
    baseUrl: string,
    words: Words
  ) => Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
  /** What this vendor's model left in a thought, or in a call, with this signature. */
  readonly sign: (part: Words, signature: string) => Opaque
}

const apiKey = Redacted.make("key")

export const apis: Readonly<Record<string, Vendor>> = {
  "openai-chat": {
    id: "openai",
    // Other vendors' models want to read again what they thought.
    layer: (baseUrl, { body }) => {
      const isReplayed = JSON.stringify(body).includes('"reasoning_content"')
      const { compat = {} } = isReplayed ? OpenAiCompatible.presets.deepSeek : OpenAiCompatible.presets.openAi
      return OpenAiCompatible.layer({ id: "openai", baseUrl, apiKey, compat })
    },
    sign: () => ({ provider: "openai" })
  },
  "openai-responses": {
    id: "openai",
    layer: (baseUrl) => OpenAi.layer({ baseUrl, apiKey }),
    sign: (part, signature) => ({
      provider: "openai",
      item: {
        type: "reasoning",
        id: part.id ?? "rs_1",
        summary: textIn(part) === "" ? [] : [{ type: "summary_text", text: textIn(part) }],
        encrypted_content: signature
      }
    })
  },
  "anthropic-messages": {
    id: "anthropic",
    layer: (baseUrl) => Anthropic.layer({ baseUrl, apiKey }),
    sign: (_, signature) => ({ provider: "anthropic", signature })
  },
  "google-generative": {
    id: "google",
    layer: (baseUrl) => Google.layer({ baseUrl: baseUrl.replace(/\/v1$/, ""), apiKey }),
    sign: (part, thoughtSignature) =>
      part.type === "toolCall"
        ? { provider: "google", thoughtSignature }
        : { provider: "google", signed: [{ from: 0, to: textIn(part).length, thoughtSignature }] }
  },
  "bedrock-converse": {
    id: "amazon-bedrock",
    layer: (baseUrl) =>
      AmazonBedrock.layer({ baseUrl: baseUrl.replace(/\/v1$/, ""), region: "us-east-1", apiKey }),
    sign: (_, signature) => ({ provider: "amazon-bedrock", signature })
  }
}

// ───────────────────────── In words of ours

export const toRequest = (vendor: Vendor, { api, body, neutral, path }: Words): Provider.ModelRequest => {
  const { custom, messages, params = {}, reasoning, system, toolChoice, tools = [] }: Words = neutral
  const { maxTokens, stop, temperature, topP }: Words = params
  const model: string = body.model ?? /models\/([^:]+)/.exec(path)?.[1]
  const said = messages.map((message: Words) => toMessage(vendor, { api, model }, message))
  return {
    model,
    messages: Transcript.repair(said).messages.flatMap((message) =>
      message.role === "custom" ? [] : [message]
    ),
    tools,
    ...defined({ system }),
    options: defined({
      maxTokens,
      temperature,
      topP,
      stop,
      toolChoice,
      thinkingLevel: reasoning,
      vendor: custom === undefined ? undefined : { [vendor.id]: custom }
    })
  }
}

const toMessage = (vendor: Vendor, { api, model }: Words, words: Words): Message.Message => {
  const { content, id, isError = false, name, role, stopReason }: Words = words
  const parts = typeof content === "string" ? content : content.map((part: Words) => toPart(vendor, part))
  switch (role) {
    case "assistant":
      return Message.assistant(parts, {
        provider: vendor.id,
        protocol: api,
        model,
        ...defined({ stopReason })
      })
    case "tool":
      return Message.toolResult({ id, name }, parts, { isError })
    default:
      return Message.user(parts)
  }
}

const toPart = (vendor: Vendor, part: Words): Words => {
  const signature = part.signature ?? part.thoughtSignature
  const opaque = signature === undefined ? {} : { opaque: vendor.sign(part, signature) }
  switch (part.type) {
    case "thinking":
      return { type: "thinking", text: textIn(part), ...opaque }
    case "toolCall":
      return {
        type: "toolCall",
        id: part.id,
        name: part.name,
        rawArguments: JSON.stringify(part.arguments ?? {}),
        params: part.arguments ?? {},
        ...opaque
      }
    case "image":
      return {
        type: "image",
        source: part.url === undefined ? { data: part.data, mediaType: part.mimeType } : { url: part.url }
      }
    default:
      return { type: "text", text: part.text, ...opaque }
  }
}

const textIn = (part: Words): string => part.text ?? part.thinking ?? ""
