/**
 * Records what a provider answers, and plays it back: a test of a real conversation, without a network.
 *
 * A cassette is a folder with a file for each request, to be kept with the test: the request, and every answer it was
 * given, in the arrays they came in. Requests are the same when they ask the same; ids and timestamps do not count.
 *
 * **Example**
 *
 * ```ts
 * const provider = Cassette.layer({ directory: "test/cassettes/weather", mode: "replay" })(Anthropic.layerConfig())
 * ```
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
import * as Stream from "effect/Stream"
import type { ModelEvent } from "../ModelEvent.ts"
import type { ModelRequest } from "../Provider.ts"
import { decorate, Provider } from "../Provider.ts"
import { InvalidRequest, ProviderError } from "../ProviderError.ts"
import * as CassetteDeck from "./CassetteDeck.ts"
import type { Answer } from "./CassetteFile.ts"
import * as CassetteFile from "./CassetteFile.ts"
import * as CassetteMiss from "./CassetteMiss.ts"
import * as CassetteRequest from "./CassetteRequest.ts"
import * as Secrets from "./CassetteSecrets.ts"

/**
 * - `live`: the provider is asked, and nothing is written.
 * - `record`: the provider is asked; its answers take the place of what was recorded for the same requests.
 * - `replay`: no provider is asked, nor even built: it needs no key. A request that was not recorded fails.
 * - `auto`: what is recorded is played, the provider is asked for the rest, and that is recorded.
 */
export const Mode = Schema.Literals(["live", "record", "replay", "auto"])
export type Mode = typeof Mode.Type

/** Where a cassette is, and what it does. */
export interface Options {
  /** The folder of the recordings. One for each provider: two of them may be asked the same. */
  readonly directory: string
  readonly mode: Mode
  /**
   * Takes out of a request what changes from run to run, such as a date or the path of a temporary folder. Only the
   * recording sees it; the provider is asked as it was.
   */
  readonly normalize?: (request: ModelRequest) => ModelRequest
  /** Values that are never to be written. What looks like the key of a known vendor never is. */
  readonly secrets?: ReadonlyArray<Redacted.Redacted>
}

/**
 * Puts a cassette around a provider. The answers to one request are played in the order they were recorded, failures
 * included; an answer that was left before its end is not recorded, and one that is left while it plays is played again.
 *
 * Fails with reason `InvalidRequest` when there is no recording: it says where the request differs from the nearest one
 * there is, and is not retried. The same reason tells of a file that cannot be read or written.
 *
 * Inside `Retry` and `Fallback` each attempt is an answer of its own; outside of them the whole is one.
 */
export const layer =
  (options: Options) =>
  <E, R>(
    inner: Layer.Layer<Provider, E, R>
  ): Layer.Layer<Provider, E, R | FileSystem.FileSystem | Path.Path> =>
    options.mode === "replay"
      ? Layer.effect(Provider, start(undefined, options))
      : decorate((provider) => start(provider, options))(inner)

/** The same around a provider at hand. */
export const make = (
  inner: Provider["Service"],
  options: Options
): Effect.Effect<Provider["Service"], never, FileSystem.FileSystem | Path.Path> => start(inner, options)

const start = Effect.fnUntraced(function* (inner: Provider["Service"] | undefined, options: Options) {
  if (inner !== undefined && options.mode === "live") return inner
  const redact = Secrets.make(options.secrets ?? [])
  const files = yield* CassetteFile.files(options.directory, redact)
  const live = options.mode === "replay" ? undefined : inner
  const id = inner?.id ?? "cassette"
  const deck = CassetteDeck.make(files, options.mode === "record")
  const failed = (detail: string) =>
    new ProviderError({ provider: id, reason: new InvalidRequest({ detail }) })
  const orFail = Effect.mapError((error: CassetteFile.CassetteFailed) => failed(error.message))

  const answer = Effect.fnUntraced(function* (request: ModelRequest) {
    const normal = options.normalize?.(request) ?? request
    const asked = Secrets.inRequest(CassetteRequest.canonical(normal), redact)
    const slot = yield* orFail(deck.take(yield* CassetteRequest.keyOf(asked), asked))
    if (slot.answer !== undefined) return held(slot, played(slot.answer))
    if (live === undefined) return Stream.fail(failed(yield* orFail(CassetteMiss.describe(files, slot))))
    return held(
      slot,
      recorded(live.stream(request), (said) => orFail(deck.add(slot, said)))
    )
  })
  return Provider.of({ id, stream: (request) => Stream.unwrap(answer(request)) })
})

type Said = Stream.Stream<ModelEvent, ProviderError>

const played = ({ error, events }: Answer): Said => {
  const said = Stream.flattenArray(Stream.fromIterable(events.filter(Arr.isReadonlyArrayNonEmpty)))
  return error === undefined ? said : Stream.concat(said, Stream.fail(error))
}

/** Writes the answer down before its reader sees the end of it. */
const recorded = (said: Said, save: (answer: Answer) => Effect.Effect<void, ProviderError>): Said =>
  Stream.suspend(() => {
    const events: Array<ReadonlyArray<ModelEvent>> = []
    let isSaved = false
    const keep = (error?: ProviderError) =>
      Effect.suspend(() => {
        if (isSaved) return Effect.void
        isSaved = true
        return save({ events: events.slice(), ...(error === undefined ? {} : { error }) })
      })
    return said.pipe(
      Stream.mapArrayEffect((batch) => {
        events.push(batch)
        return batch.some(isFinish) ? Effect.as(keep(), batch) : Effect.succeed(batch)
      }),
      Stream.concat(Stream.fromEffectDrain(Effect.suspend(keep))),
      Stream.catch((error) => Stream.unwrap(Effect.as(keep(error), Stream.fail(error))))
    )
  })

/** An answer that is left before its end is there for the next who asks. */
const held = (slot: CassetteDeck.Slot, said: Said): Said =>
  Stream.suspend(() => {
    let isOver = false
    const over = Stream.suspend(() => {
      isOver = true
      return Stream.empty
    })
    return said.pipe(
      Stream.mapArray((batch) => {
        isOver ||= batch.some(isFinish)
        return batch
      }),
      Stream.concat(over),
      Stream.onExit((exit) =>
        isOver || (Exit.isFailure(exit) && Cause.hasFails(exit.cause))
          ? Effect.void
          : CassetteDeck.giveBack(slot)
      )
    )
  })

const isFinish = (event: ModelEvent): boolean => event._tag === "Finish"
