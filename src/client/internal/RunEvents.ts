/**
 * The events of a run from its server: one stream over many connections, without a gap and without a double.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Sse from "effect/encoding/Sse"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import { AgentEvent, isInside, type OfTag } from "../../AgentEvent.ts"
import type * as Approval from "../../Approval.ts"
import * as Message from "../../Message.ts"
import { RunFailed, type RunResult } from "../../Run.ts"
import * as RunReport from "../../RunReport.ts"
import { Api } from "../../api/Api.ts"
import type * as Problem from "../../api/Problem.ts"
import type { Positioned } from "../../runs/Runs.ts"
import { type EventError, FailureReason } from "../../internal/failureReason.ts"
import {
  type Refused,
  ServerUnreachable,
  UnexpectedResponse,
  RunDied,
  type RunError
} from "../ClientError.ts"
import * as Link from "./Link.ts"

type Failure = Refused | Problem.RunNotFound

/** Larger than any event: answers and results may contain images. */
const sse: Sse.DecodeOptions = { maxEventSize: 256 * 1024 * 1024 }

const Data = Schema.fromJsonString(Schema.toCodecJson(AgentEvent))
const decodeData = Schema.decodeUnknownResult(Data)
const isKnown = (tag: string): boolean => Object.hasOwn(AgentEvent.cases, tag)

/** The event of a frame; `undefined` for one of a later version, or one that came before. */
const read = (frame: Sse.Event, last: number): Result.Result<Positioned | undefined, UnexpectedResponse> => {
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
export const events = (link: Link.Link, runId: string, after = 0): Stream.Stream<Positioned, Failure> =>
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
    const frames = (response: HttpClientResponse): Stream.Stream<Sse.Event, Failure> => {
      if (response.status === 200) return framesOf(link, response)
      if (response.status === 204) {
        isOver = true
        return Stream.empty
      }
      return Stream.fromEffect(Effect.andThen(Link.called(refusal(response)), unexpected(response)))
    }
    const once = Stream.unwrap(Effect.map(request, frames)).pipe(
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

// ───────────────────────── The record of a run

const isReason = Schema.is(FailureReason)

export class RunRecord {
  private readonly runId: string
  private readonly messages = new Map<string, Message.Message>()
  private report = RunReport.empty
  private readonly turn: Array<AgentEvent> = []
  private end: OfTag<"RunEnd"> | undefined

  constructor(runId: string) {
    this.runId = runId
  }

  readonly add = (event: AgentEvent): void => {
    if (event._tag === "MessageDelta" || event._tag === "PartialValue") return
    if (event.runId !== this.runId || isInside(event, this.runId)) return
    this.report = RunReport.fold(this.report, event)
    if (event._tag === "TurnStart") this.turn.length = 0
    this.turn.push(event)
    if (event._tag === "MessageEnd") this.messages.set(event.message.id, event.message)
    if (event._tag === "RunEnd") this.end = event
  }

  /** The result of the run, or its failure. */
  readonly outcome: Effect.Effect<RunResult, RunError> = Effect.suspend(
    (): Effect.Effect<RunResult, RunError> => {
      const { end } = this
      if (end === undefined) return Effect.fail(new ServerUnreachable({ detail: "the run showed no end" }))
      const result = this.resultOf(end)
      return end.error === undefined ? Effect.succeed(result) : Effect.fail(failure(end.error, result))
    }
  )

  private resultOf(end: OfTag<"RunEnd">): RunResult {
    const { runId, status, turns, usage } = end
    const newMessages = end.newMessageIds.flatMap((id) => this.messages.get(id) ?? [])
    const message = newMessages.findLast((message) => message.role === "assistant")
    const open = status === "suspended" ? this.open : undefined
    return {
      runId,
      status,
      turns,
      usage,
      newMessages,
      report: this.report,
      undelivered: [],
      ...(message === undefined ? {} : { message }),
      text: message === undefined ? "" : Message.textOf(message),
      duration: Duration.millis(end.durationMs),
      ...(open === undefined ? {} : { open })
    }
  }

  /** The turn that waits for a person; `undefined` where another run has its answer. */
  private get open(): Approval.OpenTurn | undefined {
    const { runId, turn } = this
    const message = turn.findLast(
      (event) => event._tag === "MessageEnd" && event.message.role === "assistant"
    )
    if (message?._tag !== "MessageEnd" || message.message.role !== "assistant") return undefined
    const of = <T extends AgentEvent["_tag"]>(tag: T): ReadonlyArray<OfTag<T>> =>
      turn.filter((event): event is OfTag<T> => event._tag === tag)
    const decisions = new Map(of("ApprovalAnswered").map((event) => [event.approvalId, decisionOf(event)]))
    const answers = new Map(of("QuestionAnswered").map((event) => [event.questionId, answerOf(event)]))
    return {
      runId,
      message: message.message,
      isSuspended: true,
      ended: of("ToolExecutionEnd").map(({ outcome, result, toolCallId }) => ({
        toolCallId,
        outcome,
        output: result
      })),
      begun: of("ToolInvoked").map(({ toolCallId }) => toolCallId),
      approvals: of("ApprovalRequested").map((event) =>
        answered(Struct.omit(event, ofEvent), decisions.get(event.approvalId))
      ),
      questions: of("QuestionAsked").map((event) =>
        answered(Struct.omit(event, ofEvent), answers.get(event.questionId))
      )
    }
  }
}

const ofEvent = ["_tag", "parent", "seq", "timestamp", "turn"] as const

const decisionOf = (event: OfTag<"ApprovalAnswered">): Approval.Answer =>
  Struct.omit(event, [...ofEvent, "runId", "path", "approvalId", "toolCallId"])
const answerOf = (event: OfTag<"QuestionAnswered">): Approval.QuestionAnswer =>
  Struct.omit(event, [...ofEvent, "runId", "path", "questionId", "toolCallId"])

const answered = <R, A>(request: R, answer: A | undefined) =>
  answer === undefined ? { request } : { request, answer }

const failure = (error: EventError, result: RunResult): RunError => {
  if (isReason(error)) return new RunFailed({ reason: error, result })
  return error._tag === "Defect" ? new RunDied({ detail: error.message, result }) : error
}
