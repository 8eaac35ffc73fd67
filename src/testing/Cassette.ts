/**
 * Recordings of a provider, which a test plays without a network.
 *
 * **Details**
 *
 * A cassette is a folder, kept with the test, with one file for each request: the request, and every answer to it in the arrays in
 * which it came. Two requests are equal if they differ in ids and timestamps only.
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as WebCrypto from "effect/crypto/WebCrypto"
import * as Hex from "effect/encoding/Hex"
import type { ModelMessage, ToolCall } from "../Message.ts"
import type { ModelEvent } from "../ModelEvent.ts"
import { type ModelRequest, decorate, Provider } from "../Provider.ts"
import { InvalidRequest, ProviderError } from "../ProviderError.ts"
import { isObject } from "../internal/json.ts"
import * as CassetteFile from "./internal/CassetteFile.ts"
import type { Answer, CassetteFailed, Files } from "./internal/CassetteFile.ts"

/**
 * The work of a cassette.
 *
 * **Details**
 *
 * - `"live"`: calls the provider, and writes nothing.
 * - `"record"`: calls the provider, and replaces the recordings of the same requests.
 * - `"replay"`: plays recordings, and fails for a request without one. It does not build the provider, so it needs no key.
 * - `"auto"`: plays recordings, and calls the provider for other requests and records its answers.
 *
 * @category models
 * @since 0.1.0
 */
export const Mode = Schema.Literals(["live", "record", "replay", "auto"])
export type Mode = typeof Mode.Type

/**
 * The options of a cassette.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The folder of the recordings. Each provider needs its own, since two of them may get the same request. */
  readonly directory: string
  /** The work of the cassette. */
  readonly mode: Mode
  /**
   * Removes from a request what changes from run to run, such as a date or the path of a temporary folder. Default: nothing.
   *
   * The provider gets the request unchanged.
   */
  readonly normalize?: (request: ModelRequest) => ModelRequest
  /** Texts that the cassette never writes, besides those that look like the key of a known vendor. Default none. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted>
}

/**
 * Puts a cassette around a provider layer.
 *
 * **Details**
 *
 * It plays the answers to one request in the order of their recording, failures included. It does not record an answer that its
 * reader leaves before the end, and plays again an answer that its reader leaves.
 *
 * It fails with the reason `InvalidRequest`, which `Retry` does not retry, for a request without a recording, and names the first
 * difference to the nearest recording. It fails with the same reason for a file that it cannot read or write.
 *
 * Inside of `Retry` and `Fallback` each attempt has an answer of its own; around them the whole call has one.
 *
 * **Example** (Recording and replaying)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { Agent } from "effect-agent"
 * import { Cassette, ScriptedProvider } from "effect-agent/testing"
 *
 * const ask = Effect.gen(function* () {
 *   const agent = yield* Agent.make({ model: "gpt-5.4-mini" })
 *   const { text } = yield* agent.prompt("Do I need a coat in Oslo?")
 *   return text
 * }).pipe(Effect.scoped)
 *
 * const program = Effect.gen(function* () {
 *   const fs = yield* FileSystem.FileSystem
 *   const directory = yield* fs.makeTempDirectoryScoped()
 *   const provider = ScriptedProvider.layer([ScriptedProvider.text("Yes.")])
 *   yield* Effect.provide(ask, Cassette.layer({ directory, mode: "record" })(provider))
 *   return yield* Effect.provide(ask, Cassette.layer({ directory, mode: "replay" })(provider))
 * }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
 *
 * console.log(await Effect.runPromise(program)) // => Yes.
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer =
  (options: Options) =>
  <E, R>(
    inner: Layer.Layer<Provider, E, R>
  ): Layer.Layer<Provider, E, R | FileSystem.FileSystem | Path.Path> =>
    options.mode === "replay"
      ? Layer.effect(Provider, start(undefined, options))
      : decorate((provider) => start(provider, options))(inner)

/**
 * Puts a cassette around a provider.
 *
 * **Details**
 *
 * It does what {@link layer} does, for a provider that is a value.
 *
 * **Example** (Calling the provider alone)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { LocalRules } from "effect-agent/providers"
 * import { Cassette } from "effect-agent/testing"
 *
 * const program = Effect.gen(function* () {
 *   const provider = yield* Cassette.make(LocalRules.provider, { directory: "cassettes", mode: "live" })
 *   return provider.id
 * }).pipe(Effect.provide(NodeServices.layer))
 *
 * console.log(await Effect.runPromise(program)) // => local
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  inner: Provider["Service"],
  options: Options
): Effect.Effect<Provider["Service"], never, FileSystem.FileSystem | Path.Path> => start(inner, options)

const start = Effect.fnUntraced(function* (inner: Provider["Service"] | undefined, options: Options) {
  if (inner !== undefined && options.mode === "live") return inner
  const redact = CassetteFile.make(options.secrets ?? [])
  const files = yield* CassetteFile.files(options.directory, redact)
  const live = options.mode === "replay" ? undefined : inner
  const id = inner?.id ?? "cassette"
  const deck = missOf(files, options.mode === "record")
  const failed = (detail: string) =>
    new ProviderError({ provider: id, reason: new InvalidRequest({ detail }) })
  const orFail = Effect.mapError((error: CassetteFile.CassetteFailed) => failed(error.message))

  const answer = Effect.fnUntraced(function* (request: ModelRequest) {
    const normal = options.normalize?.(request) ?? request
    const plain = CassetteFile.inRequest(canonical(normal), redact)
    const slot = yield* orFail(deck.take(yield* keyOf(plain), plain))
    if (slot.answer !== undefined) return held(slot, played(slot.answer))
    if (live === undefined) return Stream.fail(failed(yield* orFail(describe(files, slot))))
    return held(
      slot,
      recorded(live.stream(request), (answer) => orFail(deck.add(slot, answer)))
    )
  })
  return Provider.of({ ...inner, id, stream: (request) => Stream.unwrap(answer(request)) })
})

type Events = Stream.Stream<ModelEvent, ProviderError>

const played = ({ error, events }: Answer): Events => {
  const all = Stream.flattenArray(Stream.fromIterable(events.filter(Arr.isReadonlyArrayNonEmpty)))
  return error === undefined ? all : Stream.concat(all, Stream.fail(error))
}

/** Writes the answer before its reader sees the end of it. */
const recorded = (answer: Events, save: (answer: Answer) => Effect.Effect<void, ProviderError>): Events =>
  Stream.suspend(() => {
    const events: Array<ReadonlyArray<ModelEvent>> = []
    let isSaved = false
    const keep = (error?: ProviderError) =>
      Effect.suspend(() => {
        if (isSaved) return Effect.void
        isSaved = true
        return save({ events: events.slice(), ...(error === undefined ? {} : { error }) })
      })
    return answer.pipe(
      Stream.mapArrayEffect((batch) => {
        events.push(batch)
        return batch.some(isFinish) ? Effect.as(keep(), batch) : Effect.succeed(batch)
      }),
      Stream.concat(Stream.fromEffectDrain(Effect.suspend(keep))),
      Stream.catch((error) => Stream.unwrap(Effect.as(keep(error), Stream.fail(error))))
    )
  })

/** Makes an answer that its reader leaves before the end the next one again. */
const held = (slot: Slot, answer: Events): Events =>
  Stream.suspend(() => {
    let isOver = false
    const over = Stream.suspend(() => {
      isOver = true
      return Stream.empty
    })
    return answer.pipe(
      Stream.mapArray((batch) => {
        isOver ||= batch.some(isFinish)
        return batch
      }),
      Stream.concat(over),
      Stream.onExit((exit) =>
        isOver || (Exit.isFailure(exit) && Cause.hasFails(exit.cause)) ? Effect.void : giveBack(slot)
      )
    )
  })

const isFinish = (event: ModelEvent): boolean => event._tag === "Finish"

// ───────────────────────── Requests

/**
 * Converts a request to plain JSON, without headers, ids of messages and sessions, timestamps, usage, and the provider and model of
 * earlier answers. Ids of tool calls become numbers in the order of the calls, since some vendors send none and others start
 * again.
 */
const canonical = ({ messages, model, options, system, tools }: ModelRequest): Schema.Json => {
  const { headers: _, sessionId: __, ...stored } = options
  const ids = new Map<string, string>()
  const idOf = (id: string): string => {
    const known = ids.get(id) ?? `call-${ids.size + 1}`
    ids.set(id, known)
    return known
  }
  return toJson({
    model,
    system,
    messages: messages.map((message) => toStored(message, idOf)),
    tools,
    options: stored
  })
}

/** SHA-256 of the request, in hexadecimal. The order of members does not matter. */
const keyOf = (request: Schema.Json): Effect.Effect<string> =>
  Effect.gen(function* () {
    const crypto = yield* WebCrypto.WebCrypto
    const bytes = new TextEncoder().encode(JSON.stringify(sorted(request)))
    const digest = yield* Effect.promise(() => crypto.subtle.digest("SHA-256", bytes))
    return Hex.encode(new Uint8Array(digest))
  })

const toJson = (value: unknown): Schema.Json => JSON.parse(JSON.stringify(value))

const toStored = (message: ModelMessage, idOf: (id: string) => string): object => {
  const { content, role } = message
  switch (role) {
    case "user":
      return { role, content, ...vendorOf(message) }
    case "assistant":
      return {
        role,
        ...vendorOf(message),
        content: message.content.map((block) =>
          block.type === "toolCall" ? toStoredCall(block, idOf) : block
        )
      }
    case "toolResult":
      return {
        role,
        toolCallId: idOf(message.toolCallId),
        toolName: message.toolName,
        isError: message.isError,
        content,
        ...vendorOf(message)
      }
  }
}

/** Leaves out `params`, which `rawArguments` has too. */
const toStoredCall = (
  { id, name, opaque, rawArguments, type, ...call }: ToolCall,
  idOf: (id: string) => string
): Omit<ToolCall, "params"> => ({
  type,
  id: idOf(id),
  name,
  rawArguments,
  ...(opaque === undefined ? {} : { opaque }),
  ...vendorOf(call)
})

const vendorOf = ({ vendor }: Pick<ToolCall, "vendor">): Pick<ToolCall, "vendor"> =>
  vendor === undefined ? {} : { vendor }

const sorted = (json: Schema.Json): Schema.Json => {
  if (Array.isArray(json)) return json.map(sorted)
  if (!isObject(json)) return json
  return Object.fromEntries(
    Object.entries(json)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, sorted(value)])
  )
}

// ───────────────────────── Misses

/** Names the request, and its first difference to the nearest recording. */
const describe = (
  files: Files,
  { number, tape: { answers, key, request } }: Slot
): Effect.Effect<string, CassetteFailed> => {
  const subject = summary(request)
  if (answers.length > 0) {
    const times = answers.length === 1 ? "once" : `${answers.length} times`
    return Effect.succeed(
      `${subject} was recorded ${times} (${files.pathOf(key)}), and this is call ${number + 1}`
    )
  }
  return Effect.map(files.requests, (recorded) => {
    const [nearest] = recorded
      .map(([other, candidate]) => ({ other, differences: all(candidate, request) }))
      .sort((a, b) => distance(a.differences) - distance(b.differences))
    const [first] = nearest?.differences ?? []
    const where =
      nearest === undefined || first === undefined
        ? "nothing is recorded there"
        : `the nearest recording is ${nearest.other}.json, and differs first at ${render(first)}`
    return `${subject} was not recorded: there is no ${files.pathOf(key)}; ${where}`
  })
}

/** Names a request by its model and its last message. */
const summary = (request: Schema.Json): string => {
  const { messages, model } = isObject(request) ? request : {}
  const all = Array.isArray(messages) ? messages : []
  const last = JSON.stringify(all.at(-1) ?? null)
  const shown = last.length <= maxShown ? last : `${last.slice(0, maxShown)}…`
  return `The request to ${JSON.stringify(model)} with ${all.length} ${all.length === 1 ? "message" : "messages"}, the last ${shown},`
}

const maxShown = 200

// ───────────────────────── Differences

/** One place where a recording and a request differ. A value is `undefined` where there is none at this place. */
interface Difference {
  /** The place, such as `messages[2].content[0].text`. */
  readonly path: string
  readonly recorded: Schema.Json | undefined
  readonly requested: Schema.Json | undefined
}

/** Returns every place where they differ, in the order of the request. */
const all = (
  recorded: Schema.Json | undefined,
  requested: Schema.Json | undefined,
  path = ""
): ReadonlyArray<Difference> => {
  if (Array.isArray(recorded) && Array.isArray(requested)) {
    const length = Math.max(recorded.length, requested.length)
    return Array.from({ length }, (_, at) => all(recorded[at], requested[at], `${path}[${at}]`)).flat()
  }
  if (isObject(recorded) && isObject(requested)) {
    const names = new Set([...Object.keys(requested), ...Object.keys(recorded)])
    return [...names].flatMap((name) => all(recorded[name], requested[name], member(path, name)))
  }
  return recorded === requested ? [] : [{ path, recorded, requested }]
}

/** Returns the number of values that only one of the two has. */
const distance = (differences: ReadonlyArray<Difference>): number =>
  differences.reduce((sum, { requested, recorded }) => sum + Math.max(size(recorded), size(requested)), 0)

/** Writes a difference as `messages[2].content[0].text: "a" recorded, "b" requested`, long texts from where they part. */
const render = ({ requested, path, recorded }: Difference): string => {
  const from =
    typeof recorded === "string" && typeof requested === "string" ? parting(recorded, requested) : 0
  return `${path}: ${show(recorded, from)} recorded, ${show(requested, from)} requested`
}

const member = (path: string, name: string): string => {
  if (!/^[\w$-]+$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === "" ? name : `${path}.${name}`
}

const size = (json: Schema.Json | undefined): number => {
  if (json === undefined) return 0
  const inner = Array.isArray(json) ? json : isObject(json) ? Object.values(json) : []
  return inner.reduce<number>((sum, value) => sum + size(value), 1)
}

const parting = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

const maxLines = 100
/** Characters before the place where two texts part. */
const before = 30

const show = (json: Schema.Json | undefined, from: number): string => {
  if (json === undefined) return "nothing"
  const text = typeof json === "string" ? json : JSON.stringify(json)
  const start = text.length <= maxLines ? 0 : Math.max(0, from - before)
  const shown = text.slice(start, start + maxLines)
  const quoted = typeof json === "string" ? JSON.stringify(shown) : shown
  return `${start > 0 ? "…" : ""}${quoted}${start + maxLines < text.length ? "…" : ""}`
}

// ───────────────────────── The deck

/** The answers to one request. */
interface Tape {
  readonly key: string
  readonly request: Schema.Json
  readonly answers: Array<Answer>
  /** Numbers of the answers that are played or recorded already, or at the moment. */
  readonly taken: Set<number>
}

/** One answer to a request, in use. */
interface Slot {
  readonly tape: Tape
  /** From 0. */
  readonly number: number
  /** The recorded answer, or `undefined` if there is none. */
  readonly answer: Answer | undefined
}

interface Deck {
  /** Takes the next answer to a request. */
  readonly take: (key: string, request: Schema.Json) => Effect.Effect<Slot, CassetteFailed>
  /** Adds an answer, and writes all answers to the request. */
  readonly add: (slot: Slot, answer: Answer) => Effect.Effect<void, CassetteFailed>
}

/** Makes a deck. With `anew` it ignores and replaces the recordings. */
const missOf = (files: Files, anew: boolean): Deck => {
  const tapes = new Map<string, Tape>()
  // One call at a time, so that a tape is read once and its file has the answers in the order in which they ended.
  const one = Semaphore.makeUnsafe(1)

  const tapeOf = Effect.fnUntraced(function* (key: string, request: Schema.Json) {
    const known = tapes.get(key)
    if (known !== undefined) return known
    const recording = anew ? undefined : yield* files.read(key)
    const tape: Tape = { key, request, answers: [...(recording?.answers ?? [])], taken: new Set() }
    tapes.set(key, tape)
    return tape
  })
  return {
    take: (key, request) =>
      one.withPermit(
        Effect.map(tapeOf(key, request), (tape) => {
          let number = 0
          while (tape.taken.has(number)) number++
          tape.taken.add(number)
          return { tape, number, answer: anew ? undefined : tape.answers[number] }
        })
      ),
    add: ({ tape: { answers, key, request } }, answer) =>
      one.withPermit(
        Effect.suspend(() => {
          answers.push(answer)
          return files.write(key, { request, answers })
        })
      )
  }
}

/** Makes this answer the next one again. */
const giveBack = ({ number, tape }: Slot): Effect.Effect<void> =>
  Effect.sync(() => {
    tape.taken.delete(number)
  })
