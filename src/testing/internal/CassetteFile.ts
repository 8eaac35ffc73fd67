/**
 * The files of a cassette: one for each request, named by its key, with all answers to it.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { ModelEvent } from "../../ModelEvent.ts"
import { ProviderError } from "../../ProviderError.ts"
import * as VendorText from "../../http/VendorText.ts"
import { TaggedError } from "../../internal/errors.ts"
import { isObject } from "../../internal/json.ts"

/** The events of an answer in the arrays in which they came, and its failure. */
export const Answer = Schema.Struct({
  events: Schema.Array(Schema.Array(ModelEvent)),
  error: Schema.optionalKey(ProviderError)
})
export type Answer = typeof Answer.Type

/** The answers to one request, oldest first. */
const Recording = Schema.Struct({ request: Schema.Json, answers: Schema.Array(Answer) })
type Recording = typeof Recording.Type

/** A file of the cassette cannot be read or written. */
export class CassetteFailed extends TaggedError<CassetteFailed>()("CassetteFailed", {
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.path}: ${this.detail}`
  }
}

/** The files of one folder. */
export interface Files {
  readonly pathOf: (key: string) => string
  /** Reads a recording, or `undefined` if there is none. */
  readonly read: (key: string) => Effect.Effect<Recording | undefined, CassetteFailed>
  /** Replaces a file at once. */
  readonly write: (key: string, recording: Recording) => Effect.Effect<void, CassetteFailed>
  /** The keys and the requests of all recordings. */
  readonly requests: Effect.Effect<
    ReadonlyArray<readonly [key: string, request: Schema.Json]>,
    CassetteFailed
  >
}

/** Opens a folder, whose files are written without the secrets that `redact` replaces. */
export const files = (
  directory: string,
  redact: Redact
): Effect.Effect<Files, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const pathOf = (key: string) => path.join(directory, `${key}.json`)
    const read = (key: string) => readFile(fs, pathOf(key))
    return {
      pathOf,
      read,
      write: (key, recording) =>
        fs.makeDirectory(directory, { recursive: true }).pipe(
          Effect.andThen(encode(recording, redact)),
          Effect.flatMap((text) => replaceFile(fs, pathOf(key), text)),
          Effect.mapError((error) => failed(pathOf(key), error)),
          Effect.uninterruptible
        ),
      // `read` reports a file that cannot be read.
      requests: keysIn(fs, directory).pipe(
        Effect.flatMap(
          Effect.forEach((key) => Effect.map(Effect.option(read(key)), (found) => requestOf(key, found)))
        ),
        Effect.map((found) => found.flat())
      )
    }
  })

const readFile = (
  fs: FileSystem.FileSystem,
  file: string
): Effect.Effect<Recording | undefined, CassetteFailed> =>
  fs.readFileString(file).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.undefined),
    Effect.flatMap((text) => (text === undefined ? Effect.undefined : decode(text))),
    Effect.mapError((error) => failed(file, error))
  )

/** Writes a temporary file and renames it, so that no reader sees a part of it. */
const replaceFile = (
  fs: FileSystem.FileSystem,
  file: string,
  text: string
): Effect.Effect<void, PlatformError> => {
  const temporary = `${file}.${globalThis.crypto.randomUUID()}.tmp`
  return fs.writeFileString(temporary, text).pipe(
    Effect.andThen(fs.rename(temporary, file)),
    Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true })))
  )
}

const keysIn = (
  fs: FileSystem.FileSystem,
  directory: string
): Effect.Effect<ReadonlyArray<string>, CassetteFailed> =>
  fs.readDirectory(directory).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed([])),
    Effect.mapError((error) => failed(directory, error)),
    Effect.map((names) => names.flatMap((name) => (name.endsWith(".json") ? [name.slice(0, -5)] : [])).sort())
  )

const requestOf = (
  key: string,
  found: Option.Option<Recording | undefined>
): ReadonlyArray<readonly [key: string, request: Schema.Json]> =>
  Option.isSome(found) && found.value !== undefined ? [[key, found.value.request]] : []

const json = Schema.toCodecJson(Recording)
const decode = Schema.decodeEffect(Schema.fromJsonString(json))
const toJson = Schema.encodeEffect(json)

const encode = (recording: Recording, redact: Redact): Effect.Effect<string, Schema.SchemaError> =>
  toJson({
    ...recording,
    answers: recording.answers.map((answer) => ({
      ...answer,
      events: inDeltas(answer.events, redact)
    }))
  }).pipe(Effect.map((encoded) => `${JSON.stringify(inJson(encoded, redact), undefined, 2)}\n`))

const failed = (path: string, error: PlatformError | Schema.SchemaError): CassetteFailed =>
  new CassetteFailed({
    path,
    detail: error._tag === "SchemaError" ? `is not a recording: ${error.message}` : error.message
  })

// ───────────────────────── Secrets

/** Replaces the secrets in a text. */
type Redact = (text: string) => string

/** Removes these values, and texts that look like the key of a known vendor. */
export const make = (secrets: ReadonlyArray<Redacted.Redacted>): Redact => {
  const values = secrets
    .map(Redacted.value)
    .filter((value) => value !== "")
    .sort((a, b) => b.length - a.length)
  return (text) =>
    VendorText.cutOut(values.reduce((rest, value) => rest.replaceAll(value, VendorText.redacted), text))
}

/** Removes the secrets from every text of a value. */
const inJson = (json: Schema.Json, redact: Redact): Schema.Json => {
  if (typeof json === "string") return redact(json)
  if (Array.isArray(json)) return json.map((item) => inJson(item, redact))
  if (!isObject(json)) return json
  return mapValues(json, (value) => inJson(value, redact))
}

/** Removes the secrets from a request: from every text, and vendor options with the name of a secret. */
export const inRequest = (request: Schema.Json, redact: Redact): Schema.Json => {
  const plain = inJson(request, redact)
  if (!isObject(plain) || !isObject(plain["options"])) return plain
  const { hostedTools, vendor } = plain["options"]
  return {
    ...plain,
    options: {
      ...plain["options"],
      ...(hostedTools === undefined ? {} : { hostedTools: unnamed(hostedTools) }),
      ...(vendor === undefined ? {} : { vendor: unnamed(vendor) })
    }
  }
}

/**
 * Removes the secrets from deltas. A secret may be split over several: the first delta of its block then gets the whole text.
 */
const inDeltas = (
  batches: ReadonlyArray<ReadonlyArray<ModelEvent>>,
  redact: Redact
): ReadonlyArray<ReadonlyArray<ModelEvent>> => {
  const texts = new Map<string, string>()
  const parts = partsOf(batches)
  for (const { block, event } of parts.flat()) {
    if ("delta" in event) texts.set(block, (texts.get(block) ?? "") + event.delta)
  }
  const clean = new Map(
    [...texts].flatMap(([block, text]) => (redact(text) === text ? [] : [[block, redact(text)] as const]))
  )
  if (clean.size === 0) return batches
  return parts.map((batch) =>
    batch.map(({ block, event }) => {
      const delta = clean.get(block)
      if (!("delta" in event) || delta === undefined) return event
      clean.set(block, "")
      return { ...event, delta }
    })
  )
}

/** Each event with the name of its block. The numbers of blocks start again after `Retracted`. */
const partsOf = (batches: ReadonlyArray<ReadonlyArray<ModelEvent>>) => {
  let answer = 0
  return batches.map((batch) =>
    batch.map((event) => {
      if (event._tag === "Retracted") answer++
      return { event, block: "contentIndex" in event ? `${answer} ${event.contentIndex}` : "" }
    })
  )
}

const secretName = /auth|key|token|secret|cookie|password/i

const unnamed = (json: Schema.Json): Schema.Json => {
  if (Array.isArray(json)) return json.map(unnamed)
  if (!isObject(json)) return json
  return mapValues(json, (value, name) =>
    typeof value === "string" && secretName.test(name) ? VendorText.redacted : unnamed(value)
  )
}

const mapValues = (
  json: Schema.JsonObject,
  f: (value: Schema.Json, name: string) => Schema.Json
): Schema.JsonObject =>
  Object.fromEntries(Object.entries(json).map(([name, value]) => [name, f(value, name)]))
