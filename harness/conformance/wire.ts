/**
 * Recorded answers of real providers: what a provider of ours must make of each, however the bytes are cut. Every case is
 * served over HTTP by `replay-server.mjs`, asked for through the public provider of its API, and judged by `grade.mjs`;
 * both lie beside the folder.
 */
import { NodeHttpClient } from "@effect/platform-node"
import { Duration, Effect, type Layer, Redacted, Result, Stream } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { Message, ModelEvent, Provider, type ProviderError } from "effect-agent"
import { NodeHttp } from "effect-agent/node"
import * as providers from "effect-agent/providers"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Kind } from "./suite.ts"
import type { Words } from "./words.ts"

/** Which provider speaks the API of a folder. */
const providerNames: Readonly<Record<string, string>> = {
  "openai-chat": "OpenAiCompatible",
  "openai-responses": "OpenAi",
  "anthropic-messages": "Anthropic",
  "google-generative": "Google"
}
const known: Words = providers

/** Bodies up to this size arrive byte by byte; larger ones in so many pieces, but with `--whole`. `cuts` parts them at single bytes too. */
const small = 4 * 1024

/** How the bytes travel: how the server cuts them, and which client reads them. */
const transportsFor = (size: number, whole: boolean) => [
  { name: "whole", options: "", client: FetchHttpClient.layer },
  {
    name: "pieces",
    options: `chunk=${whole ? 1 : Math.max(1, Math.ceil(size / small))}`,
    client: FetchHttpClient.layer
  },
  { name: "rand=7", options: "rand=7", client: NodeHttpClient.layerUndici },
  { name: "rand=5", options: "rand=5", client: NodeHttp.layer }
]

export const kind: Kind = async (dir, { whole }) => {
  const beside = (file: string): Promise<Words> => import(pathToFileURL(join(dir, "..", file)).href)
  const { grade } = await beside("grade.mjs")
  const server = await (await beside("replay-server.mjs")).startReplay({ corpus: dir })
  const given = { server, grade, dir, whole }
  const isBuilt = (api: string) => known[providerNames[api] ?? ""] !== undefined
  const apis = readdirSync(dir).toSorted()
  return {
    concurrency: 4,
    skipped: apis
      .filter((api) => !isBuilt(api))
      .map((api) => `${api}: ${readdirSync(join(dir, api)).length} cases`),
    cases: apis.filter(isBuilt).flatMap((api) =>
      readdirSync(join(dir, api))
        .toSorted()
        .map((name) => ({ name: `${api}/${name}`, run: () => judge(given, api, name) }))
    ),
    close: () => server.close()
  }
}

type ProviderLayer = Layer.Layer<Provider.Provider, never, HttpClient.HttpClient>
const apiKey = Redacted.make("key")

interface Given {
  readonly server: Words
  readonly grade: Words
  readonly dir: string
  readonly whole: boolean
}

const judge = async ({ dir, grade, server, whole }: Given, api: string, name: string) => {
  const read = (file: string): Words => JSON.parse(readFileSync(join(dir, api, name, file), "utf8"))
  const [expected, { model, vendor: id }] = [read("expected.json"), read("meta.json")]
  charge(expected)
  // An id that is nowhere on the wire is one that the oracle made up, as every client has to.
  const body = readFileSync(join(dir, api, name, "response.sse"), "utf8")
  const ids = (expected.toolCalls ?? []).every((call: Words) => !call.id || body.includes(call.id))
  const problems: Array<string> = []
  const actual: Record<string, object> = {}
  for (const transport of transportsFor(Buffer.byteLength(body), whole)) {
    const baseUrl = server.base(`${api}/${name}`, transport.options)
    const layer: ProviderLayer = known[providerNames[api] ?? ""].layer({
      id,
      baseUrl,
      apiKey,
      wire: "strict"
    })
    const shown = await Effect.runPromise(
      ask(model ?? "unnamed").pipe(
        Effect.provide(layer),
        Effect.provide(transport.client),
        Effect.map(project)
      )
    )
    actual[transport.name] = shown
    problems.push(
      ...grade(expected, shown, { ids }).map((problem: string) => `${transport.name}: ${problem}`)
    )
  }
  return { problems, actual }
}

/** Adds what the vendor charges and the oracles leave out: the prompts of its own tools, and its summaries. */
const charge = ({ usage, usageAccept, usageRaw }: Words): void => {
  if (usage?.toolUsePrompt !== undefined) usage.input += usage.toolUsePrompt
  for (const { cache_read_input_tokens: cached, input_tokens, output_tokens, type } of usageRaw?.iterations ??
    []) {
    if (type !== "compaction") continue
    for (const counts of [usage, ...(usageAccept ?? [])]) {
      counts.input += input_tokens + cached
      counts.output += output_tokens
      counts.cachedInput += cached
      counts.total += input_tokens + cached + output_tokens
    }
  }
}

// The longest recordings have 400,000 bytes, which may arrive one by one: on a busy machine that takes a minute.
const patience = "2 minutes"

interface Answer {
  readonly reply: ModelEvent.Reply
  readonly result: Result.Result<void, ProviderError.ProviderError>
}

const ask = Effect.fnUntraced(function* (model: string): Effect.fn.Return<Answer, never, Provider.Provider> {
  const provider = yield* Provider.Provider
  let reply = ModelEvent.emptyReply
  const result = yield* provider
    .stream({ model, messages: [Message.user("Hi")], tools: [], options: {} })
    .pipe(
      Stream.runForEach((event) =>
        Effect.sync(() => {
          reply = ModelEvent.append(reply, event)
        })
      ),
      Effect.result,
      // Neither silence nor a defect is an answer: both fail the case.
      Effect.timeout(patience),
      Effect.orDie
    )
  return { reply, result }
})

/** The shape `grade.mjs` judges. */
const project = ({ reply: { content, finish }, result }: Answer): object => {
  const error = Result.isFailure(result) ? errorOf(result.failure) : undefined
  const isCut = error === undefined ? finish === undefined : error.reason === "StreamTruncated"
  const outcome = isCut ? "incomplete" : error === undefined ? "complete" : "error"
  const textOf = (type: string) => content.map((block) => (block.type === type ? textIn(block) : "")).join("")
  return {
    outcome,
    text: textOf("text"),
    thinking: textOf("thinking"),
    toolCalls: content.flatMap((block) =>
      block.type === "toolCall" &&
      block.hosted !== true &&
      block.params !== undefined &&
      outcome === "complete"
        ? [{ id: block.id, name: block.name, arguments: block.params }]
        : []
    ),
    stopKind: finish?.stopReason,
    usage: usageOf(finish),
    error
  }
}

const textIn = (block: ModelEvent.Reply["content"][number]): string =>
  block.type === "text" || block.type === "thinking" ? block.text : ""

const usageOf = (finish: ModelEvent.Reply["finish"]): object | null => {
  if (finish?.usage === undefined) return null
  const { cacheRead: cachedInput, cacheWrite, input, output, reasoning, total } = finish.usage
  return { input, output, cachedInput, cacheWrite, reasoning, total }
}

const errorOf = (error: Words) => ({
  reason: error.reason?._tag ?? error._tag,
  message: error.message,
  status: error.reason?.status,
  retryable: error.isRetryable,
  retryAfterMs: error.retryAfter && Duration.toMillis(error.retryAfter),
  contextOverflow: error.reason?._tag === "ContextOverflow"
})
