/**
 * The events of a run from its server: one stream over many connections, without a gap and without a double.
 */
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { AgentEvent } from "../../AgentEvent.ts"
import { Api } from "../../api/Api.ts"
import type * as Problem from "../../api/Problem.ts"
import { type Refused, ServerUnreachable, UnexpectedResponse } from "../ClientError.ts"
import * as Link from "./Link.ts"

/**
 * An event and its position in the log of its run.
 *
 * @category models
 * @since 0.2.0
 */
export interface Watched {
  /** The position, from 1. */
  readonly position: number
  /** The event. */
  readonly event: AgentEvent
}

type Failure = Refused | Problem.RunNotFound

/** Larger than any event: answers and results may contain images. */
const sse: Sse.DecodeOptions = { maxEventSize: 256 * 1024 * 1024 }

const Data = Schema.fromJsonString(Schema.toCodecJson(AgentEvent))
const decodeData = Schema.decodeUnknownResult(Data)
const isKnown = (tag: string): boolean => Object.hasOwn(AgentEvent.cases, tag)

/** The event of a frame; `undefined` for one of a later version, or one that came before. */
const read = (frame: Sse.Event, last: number): Result.Result<Watched | undefined, UnexpectedResponse> => {
  const position = Number(frame.id)
  if (!isKnown(frame.event) || !(position > last)) return Result.succeed(undefined)
  return Result.mapBoth(decodeData(frame.data), {
    onSuccess: (event) => ({ position, event }),
    onFailure: ({ message }) =>
      new UnexpectedResponse({ detail: `Event ${frame.event} at ${position}: ${message}` })
  })
}

const brokenOff = new ServerUnreachable({ detail: "the stream of events broke off" })
const silent = new ServerUnreachable({ detail: "the stream of events was silent for too long" })

/** Decodes a refusal as its endpoint declares it. */
const refusal = HttpApiClient.decodeResponse(Api, { group: "runs", endpoint: "events" })

/** The frames of one response. */
const framesOf = ({ silence }: Link.Link, response: HttpClientResponse) =>
  response.stream.pipe(
    Stream.timeoutOrElse({ duration: silence, orElse: () => Stream.fail(silent) }),
    Stream.mapError((error) => (error._tag === "ServerUnreachable" ? error : Link.unreachable(error))),
    Stream.decodeText,
    Stream.pipeThroughChannel(Sse.decode<ServerUnreachable, unknown>(sse)),
    Stream.catchTags({
      // The server asks for a delay before the next connection, which the schedule has.
      Retry: () => Stream.fail(brokenOff),
      SseError: ({ message }) => Stream.fail(new UnexpectedResponse({ detail: message }))
    })
  )

/** Reads the events of a run behind the position `after`, until the run is over. */
export const watch = (link: Link.Link, runId: string, after = 0): Stream.Stream<Watched, Failure> =>
  Stream.suspend(() => {
    let last = after
    let isOver = false
    const request = Effect.suspend(() =>
      link.api.runs.events({
        params: { runId },
        headers: last === 0 ? {} : { "last-event-id": String(last) },
        query: { partials: "true" },
        responseMode: "response-only"
      })
    ).pipe(Link.called, Effect.timeoutOrElse({ duration: link.silence, orElse: () => Effect.fail(silent) }))
    const events = (response: HttpClientResponse): Stream.Stream<Sse.Event, Failure> => {
      if (response.status === 200) return framesOf(link, response)
      if (response.status === 204) {
        isOver = true
        return Stream.empty
      }
      return Stream.fromEffect(Effect.andThen(Link.called(refusal(response)), unexpected(response)))
    }
    const once = Stream.unwrap(Effect.map(request, events)).pipe(
      Stream.mapEffect((frame) => Effect.fromResult(read(frame, last))),
      Stream.filter((watched) => watched !== undefined),
      Stream.tap(({ event, position }) =>
        Effect.sync(() => {
          last = position
          isOver = event._tag === "RunEnd" && event.runId === runId
        })
      ),
      Stream.takeUntil(() => isOver)
    )
    // A body may also end in the middle without an error.
    const whole = Stream.concat(
      once,
      Stream.suspend(() => (isOver ? Stream.empty : Stream.fail(brokenOff)))
    )
    return Stream.retry(whole, Link.whileTransient(link.reconnect))
  })

const unexpected = ({ status }: HttpClientResponse) =>
  Effect.fail(new UnexpectedResponse({ status, detail: "A stream of events has the status 200." }))
