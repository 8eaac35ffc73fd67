/**
 * Events of answers as server-sent events, in both directions: `event:` is the tag, `data:` the whole event as JSON. A failure is
 * `event: error` with the encoded `ProviderError`.
 *
 * Deltas are most events of an answer. They pass without a schema.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Json from "../../internal/json.ts"
import { ModelEvent } from "../../ModelEvent.ts"
import { Protocol, ProviderError, ServerError } from "../../ProviderError.ts"
import { sane } from "../../Usage.ts"
import * as VendorText from "../../http/VendorText.ts"

// ───────────────────────── To frames

/** The frame of an event. Fails for an event that is not valid, which only a provider without types can give. */
export const write = (event: ModelEvent): Result.Result<string, ProviderError> => {
  switch (event._tag) {
    case "TextDelta":
    case "ThinkingDelta":
    case "ToolCallDelta":
    case "TextStart":
    case "ThinkingStart":
    case "Retracted":
      return Result.succeed(frame(event._tag, JSON.stringify(event)))
    case "Attempt":
      return encoded(event, withoutKeys)
    default:
      return encoded(event)
  }
}

/** The frame of a failure, without anything that looks like a key of the server. */
export const writeError = (error: ProviderError): string =>
  frame(errorName, JSON.stringify(encodeError(error), withoutKeys))

const withoutKeys = (_: string, value: unknown): unknown =>
  typeof value === "string" ? VendorText.cutOut(value) : value

const frame = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

const errorName = "error"

const EventJson = Schema.toCodecJson(ModelEvent)
const ErrorJson = Schema.toCodecJson(ProviderError)
const encodeEvent = Schema.encodeUnknownResult(EventJson)
const encodeKnownError = Schema.encodeUnknownResult(ErrorJson)

const encoded = (event: ModelEvent, replace?: typeof withoutKeys): Result.Result<string, ProviderError> =>
  Result.mapBoth(
    Result.orElse(encodeEvent(event), () => encodeEvent(saneEvent(event))),
    {
      onSuccess: (json) => frame(event._tag, JSON.stringify(json, replace)),
      onFailure: () => invalid("", `The provider gave an event ${event._tag} that is not valid`)
    }
  )

/** The event with counts of tokens that JSON can write. */
const saneEvent = (event: ModelEvent): ModelEvent =>
  event._tag === "Finish" && event.usage !== undefined ? { ...event, usage: sane(event.usage) } : event

const encodeError = (error: ProviderError): Schema.Json =>
  Result.getOrElse(encodeKnownError(error), () => ({
    _tag: "ProviderError",
    provider: error.provider,
    reason: { _tag: "ServerError", detail: error.message }
  }))

// ───────────────────────── From frames

/** A frame, as a parser of server-sent events gives it. */
export interface Frame {
  readonly event: string
  readonly data: string
}

/** The event of a frame, `undefined` for a tag that this version does not know. Fails for a frame of a failure. */
export const read = (
  { data, event }: Frame,
  provider: string
): Result.Result<ModelEvent | undefined, ProviderError> => {
  const json = Json.parse(data)
  if (event === errorName) return Result.fail(errorIn(json, data, provider))
  if (!Predicate.isObject(json)) return Result.fail(invalid(provider, `No JSON object: ${start(data)}`))
  const quick = deltaIn(json)
  if (quick !== undefined) return Result.succeed(quick)
  if (!tags.has(json["_tag"])) return Result.succeed(undefined)
  return Result.mapError(decodeEvent(json), () => invalid(provider, `No valid event: ${start(data)}`))
}

const decodeEvent = Schema.decodeUnknownResult(EventJson)
const decodeError = Schema.decodeUnknownResult(ErrorJson)

const tags: ReadonlySet<unknown> = new Set(Object.keys(ModelEvent.cases))

type Members = { readonly [member: string]: unknown }

/** A delta, `undefined` for any other event and for a delta that is not valid. */
const deltaIn = ({ _tag, contentIndex, delta }: Members): ModelEvent | undefined =>
  typeof delta === "string" &&
  typeof contentIndex === "number" &&
  Number.isSafeInteger(contentIndex) &&
  (_tag === "TextDelta" || _tag === "ThinkingDelta" || _tag === "ToolCallDelta")
    ? { _tag, contentIndex, delta }
    : undefined

/** A reason that this version does not know counts as one of the server. */
const errorIn = (json: Schema.Json | undefined, data: string, provider: string): ProviderError =>
  Result.getOrElse(decodeError(json), () => {
    const reason = Predicate.isObject(json) && Predicate.isObject(json["reason"]) ? json["reason"] : {}
    const detail = typeof reason["detail"] === "string" ? reason["detail"] : start(data)
    return new ProviderError({ provider, reason: new ServerError({ detail }) })
  })

const invalid = (provider: string, detail: string): ProviderError =>
  new ProviderError({ provider, reason: new Protocol({ kind: "badShape", detail }) })

const start = (data: string): string => (data.length <= 200 ? data : `${data.slice(0, 200)}…`)
