/**
 * An answer while it streams. It publishes each piece, retracts them if the model must answer again, and becomes a message when the answer
 * ends or breaks off.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { AnswerSize } from "./answerSize.ts"
import * as Failure from "./failureReason.ts"
import { attempt, type Stop } from "./interruption.ts"
import * as Limits from "./limits.ts"
import * as Message from "../Message.ts"
import * as ModelEvent from "../ModelEvent.ts"
import type { Price } from "../Prices.ts"
import type { ModelRequest } from "../Provider.ts"
import { ContextOverflow, ProviderError } from "../ProviderError.ts"
import { type Part, Partials } from "./partials.ts"
import { news, Recovery } from "./recovery.ts"
import type { Run } from "./run.ts"
import * as Spans from "./spans.ts"
import type { Attempt } from "./telemetry.ts"
import type { Usage } from "../Usage.ts"

/** The sizes in tokens of a request that is too large, and of the context window in the price list. */
export interface Excess {
  readonly size: number
  readonly limit: number
}

export class Reply {
  id: Message.MessageId = Message.makeId()
  readonly timestamp: number
  /** The first request; `undefined` where a hook answers in the model's place. */
  request: ModelRequest | undefined
  /** The time of the first request, in milliseconds since the run began. */
  askedAt = 0
  /** The time of the last request, in milliseconds of the clock's monotonic time. */
  private sentAt = 0
  /** The seconds from the last request to the first piece of the answer. */
  firstChunk: number | undefined
  /** The answer so far, which events change in place. Others get copies. */
  reply = ModelEvent.draft()
  isStarted = false
  readonly recovery = new Recovery()
  /** Whether a decorator retried after an answer that failed: the tokens of both answers count. */
  private isFailed = false
  readonly run: Run
  /** Whether the answer is over. An abandoned provider may still send events, which are then dropped. */
  private isClosed = false
  private size = new AnswerSize()
  /** The usage of this answer in the sum of the limits, which a newer estimate replaces. */
  private entry = Limits.nothing
  /** The price of the model that answers, `undefined` until `findPrice` has found it. */
  private price: Price | undefined
  /** The sizes of a request that the vendor answered although it exceeds the context window. The vendor may have cut it. */
  excess: Excess | undefined
  /** The ids of the tool calls so far, each with the last number that made it unique: vendors repeat ids, or leave them out. */
  readonly callIds = new Map<string, number>()
  /** The parsers of arguments and output, for `PartialValue` events; absent in a run without `partialValues`. */
  private partials: Partials | undefined

  constructor(run: Run) {
    this.run = run
    this.timestamp = run.clock.currentTimeMillisUnsafe()
    this.partials = partialsOf(run)
  }

  /** The id of the provider that answers, which a router may have chosen. */
  get provider(): string {
    return this.reply.start?.provider ?? this.run.provider.id
  }

  /** Counts a request that is sent now, and starts its clock. */
  send(request: ModelRequest): void {
    this.run.countModelCall()
    this.request = request
    this.sentAt = Limits.monotonicMillis(this.run.clock)
    this.firstChunk = undefined
  }

  /**
   * Publishes events of the provider that arrived together. It takes them one by one if one is about the call itself, or if limits must be
   * checked after each.
   */
  receive(
    events: ReadonlyArray<ModelEvent.ModelEvent>
  ): Effect.Effect<void, Failure.LimitExceeded | ProviderError> {
    if (this.isClosed) return Effect.void
    if (this.run.spent.isBounded || events.some(isAboutCall)) {
      return Effect.forEach(events, (event) => this.receiveOne(event), { discard: true })
    }
    this.begin()
    return this.publish(events)
  }

  private receiveOne(
    event: ModelEvent.ModelEvent
  ): Effect.Effect<void, Failure.LimitExceeded | ProviderError> {
    return Effect.suspend(() => {
      if (this.isClosed) return Effect.void
      if (event._tag === "Retracted") this.retract(this.isFailed)
      else if (event._tag === "Attempt") {
        if (!this.isStarted && isPaidFor(event.error)) this.enterForGood()
        this.isFailed = true
        this.announceRetry(event)
        return Effect.andThen(Spans.retry(event), this.meter)
      } else {
        this.begin()
        const published = this.publish([event])
        return Effect.andThen(
          event._tag === "Start" ? Effect.andThen(published, this.findPrice) : published,
          this.meter
        )
      }
      return this.meter
    })
  }

  /** Finds the price for the estimate of an answer that broke off, also in a run that was stopped. */
  readonly priceOfRest: Effect.Effect<void> = Effect.suspend(() =>
    this.request === undefined || this.price !== undefined
      ? Effect.void
      : Effect.asVoid(attempt(this.findPrice, { until: Effect.sleep(100) }))
  )

  /** Finds the price of the model that answers. */
  readonly findPrice: Effect.Effect<void> = Effect.suspend(() => {
    const { request, run } = this
    const { finish, start } = this.reply
    // Where another model took over in the middle of the answer, its price counts for the whole answer.
    const model = finish?.responseModel ?? start?.model ?? request?.model ?? run.options.model
    const responseModel = finish?.responseModel ?? start?.responseModel
    const { cacheRetention } = request?.options ?? {}
    const asked = { provider: this.provider, model, responseModel, at: this.timestamp, cacheRetention }
    return Effect.map(run.prices.find(asked), (price) => void (this.price = price ?? this.price))
  })

  /** Adds the cost to the usage of a finished answer. Sets `excess` for a request that exceeds the context window. */
  readonly settle: Effect.Effect<void> = Effect.suspend(() => {
    const { finish } = this.reply
    if (finish?.usage === undefined) return Effect.void
    const { usage } = finish
    const isPriced = this.price !== undefined && finish.responseModel === undefined
    const found = usage.cost === undefined && !isPriced ? this.findPrice : Effect.void
    return Effect.map(found, () => {
      this.reply.finish = { ...finish, usage: this.priced(usage) }
      const { contextWindow: limit = Infinity } = this.price ?? {}
      // With tools of the vendor, the usage is the sum of several requests of the vendor, which says nothing about the size of this one.
      const isSum = this.reply.content.some((block) => block?.type === "hostedTool")
      if (usage.input > limit && !isSum) this.excess = { limit, size: usage.input }
    })
  })

  /** Retracts the answer to a request that the vendor may have cut. An answer to a shorter request follows. */
  retractCut({ limit, size }: Excess): void {
    const detail = `the request has ${size} tokens, and the context window ${limit}`
    const reason = new ContextOverflow({ detail, limit, size })
    this.run.spent.add(this.reply.finish?.usage)
    this.again({
      attempt: 1,
      delay: Duration.zero,
      error: new ProviderError({ provider: this.provider, reason })
    })
  }

  private priced(usage: Usage): Usage {
    return Limits.priced(usage, this.run.options.limits?.prices, this.price)
  }

  private publish(events: ReadonlyArray<ModelEvent.ModelEvent>): Effect.Effect<void, ProviderError> {
    const deltas: Array<ModelEvent.ModelEvent | Part> = []
    const take = (event: ModelEvent.ModelEvent): void => {
      const { partials } = this
      let part: Part | undefined
      if (partials === undefined) ModelEvent.add(this.reply, event)
      else part = partials.add(this.reply, event)
      this.weigh(event)
      // `Start` and `Finish` become `MessageStart` and `MessageEnd`, not deltas.
      if (event._tag !== "Start" && event._tag !== "Finish") deltas.push(event)
      if (part !== undefined) deltas.push(part)
    }
    for (const event of events) {
      if (event._tag === "ToolCallStart") take(Message.withUniqueId(this.callIds, event))
      else {
        if (event._tag === "ToolCallDelta" || event._tag === "ToolCallEnd") this.openCall(event, take)
        take(event)
      }
    }
    const published = deltas.length === 0 ? Effect.void : this.run.mailbox.deltas(this.id, deltas)
    const reason = this.size.problem
    if (reason === undefined) return published
    return Effect.andThen(published, new ProviderError({ provider: this.provider, reason }))
  }

  private weigh(event: ModelEvent.ModelEvent): void {
    switch (event._tag) {
      case "TextDelta":
      case "ThinkingDelta":
        return this.size.addText(event.delta.length)
      case "ToolCallDelta":
        return this.size.addArguments(event.delta.length)
      case "ToolCallEnd":
        return this.size.addWhole(event.rawArguments.length)
    }
  }

  /** Publishes the start of the answer, once. */
  begin(): void {
    if (this.isStarted) return
    this.isStarted = true
    this.firstChunk ??= (Limits.monotonicMillis(this.run.clock) - this.sentAt) / 1000
    this.run.openAnswer(this)
  }

  /** Begins the tool call of a piece if the provider omitted its start. It has no name, so that it ends as an unknown tool. */
  private openCall(
    { contentIndex }: { readonly contentIndex: number },
    take: (event: ModelEvent.ModelEvent) => void
  ): void {
    if (this.reply.content[contentIndex]?.type === "toolCall") return
    take(
      Message.withUniqueId(this.callIds, { _tag: "ToolCallStart" as const, contentIndex, id: "", name: "" })
    )
  }

  /** Publishes a failed attempt and the retry that follows. */
  announceRetry({ attempt, delay, error }: Attempt): void {
    this.run.emit({ _tag: "ModelCallError", error, willRetry: true })
    this.run.emit({ _tag: "ModelCallRetry", attempt, delayMs: Duration.toMillis(delay), error })
  }

  /** Whether the answer has a block. */
  get hasSpoken(): boolean {
    return this.reply.content.length > 0
  }

  /** Publishes a failed attempt whose answer had no block yet, and the retry that follows. */
  again(attempt: Attempt): void {
    this.announceRetry(attempt)
    if (this.isStarted) this.retract()
  }

  /** Retracts the published pieces of the answer. Another answer follows; with `false` the same answer follows in another form. */
  retract(isAnother = true): void {
    if (isAnother) this.enterForGood()
    this.isFailed = false
    if (this.isStarted) this.run.retractAnswer(this.id)
    this.id = Message.makeId()
    this.isStarted = false
    this.reply = ModelEvent.draft()
    this.partials = partialsOf(this.run)
    this.size = new AnswerSize()
    this.price = undefined
    this.excess = undefined
    this.callIds.clear()
  }

  private badEnd(
    cause: Cause.Cause<Failure.FailureReason>
  ): Pick<Message.Assistant, "stopReason" | "errorMessage" | "refused"> {
    const { isHalting, stop } = this.run.control
    if (isHalting && Cause.hasInterrupts(cause))
      return { stopReason: "aborted", errorMessage: stop === undefined ? interrupted : reasonOf(stop) }
    const error = errorOf(cause)
    // A vendor that refuses a prompt for its content would refuse each later request with that prompt: later requests leave it out.
    const isRefused =
      (error._tag === "GuardrailTripped" && error.stage === "input") ||
      (error._tag === "ProviderError" && error.reason._tag === "ContentPolicy" && !this.hasSpoken)
    return {
      stopReason: "error",
      errorMessage: error.message,
      ...(isRefused ? { refused: news(this.run.messages) } : {})
    }
  }

  /** Ends the answer, complete or not, and returns its message. */
  close(exit: Exit.Exit<void, Failure.FailureReason>): Message.Assistant {
    const { request, run } = this
    if (this.isStarted || (Exit.isFailure(exit) && isPaid(exit.cause))) this.enterForGood()
    const usage = this.usageOf(exit)
    this.begin()
    this.isClosed = true
    const answer = ModelEvent.toAssistant(this.reply, {
      id: this.id,
      timestamp: run.clock.currentTimeMillisUnsafe(),
      provider: run.provider.id,
      model: request?.model ?? run.options.model,
      protocol: "",
      ...this.recovery.kept(Exit.isSuccess(exit)),
      ...(Exit.isFailure(exit) ? this.badEnd(exit.cause) : {})
    })
    const message =
      usage === undefined || usage === answer.usage ? answer : { ...answer, usage: this.priced(usage) }
    run.spent.add(message.usage)
    run.end(message)
    return message
  }

  /** The usage that the provider reported, or an estimate for an answer that was broken off before that. */
  usageOf(exit: Exit.Exit<unknown, unknown>): Usage | undefined {
    const reported = this.reply.finish?.usage
    return Exit.isSuccess(exit) || !isBrokenOff(exit.cause, this.isStarted)
      ? reported
      : (Limits.reported(reported) ?? this.estimated ?? reported)
  }

  private get estimated(): Usage | undefined {
    const { reply, request } = this
    return request && Limits.estimate(Limits.inputOf(request), reply.content)
  }

  /** Adds an estimate of the answer so far to the sum of the limits. Fails if a limit is then reached. */
  private readonly meter: Effect.Effect<void, Failure.LimitExceeded> = Effect.suspend(() => {
    // `close` adds the usage of a finished answer.
    if (!this.run.spent.isBounded || this.reply.finish !== undefined) return Effect.void
    this.enter(Limits.estimate(0, this.reply.content))
    return this.run.spent.exceeded ?? Effect.void
  })

  private enter(usage: Usage): void {
    const { model = this.request?.model } = this.reply.start ?? {}
    const entry = { usage: this.priced(usage), model: `${this.provider}/${model}` }
    this.run.spent.replace(this.entry, entry)
    this.entry = entry
  }

  /** Adds the usage of an answer that is over. Later events belong to another answer, whose usage counts apart. */
  private enterForGood(): void {
    const estimated = this.run.spent.isBounded ? this.estimated : undefined
    const usage = Limits.reported(this.reply.finish?.usage) ?? estimated
    if (this.request === undefined || usage === undefined) return
    this.enter(usage)
    this.entry = Limits.nothing
  }
}

const partialsOf = ({ options, output }: Run): Partials | undefined =>
  options.partialValues === true ? new Partials(output) : undefined

const isAboutCall = ({ _tag }: ModelEvent.ModelEvent): boolean => _tag === "Attempt" || _tag === "Retracted"

/** Whether the vendor may charge for a failed request, because it may have read it before the failure. */
const isPaidFor = (error: Failure.EventError): boolean => {
  if (error._tag !== "ProviderError") return false
  const { reason } = error
  return reason._tag === "Transport" ? reason.kind === "reset" : brokenOff.has(reason._tag)
}

/** Whether the vendor may charge for a call that failed, or that a stop of the run broke off. */
const isPaid = (cause: Cause.Cause<Failure.FailureReason>): boolean =>
  Cause.hasInterrupts(cause) || isPaidFor(errorOf(cause))

/** Whether the vendor may charge for an answer that did not reach its end, because it had begun or the run was stopped. */
const isBrokenOff = (cause: Cause.Cause<unknown>, isStarted: boolean): boolean => {
  if (Cause.hasInterrupts(cause)) return true
  const error = Cause.squash(cause)
  return isStarted && (!(error instanceof ProviderError) || isPaidFor(error))
}

const brokenOff: ReadonlySet<string> = new Set(["StreamTruncated", "StreamStalled", "Protocol"])

const interrupted = "interrupted by a message of the user"

const reasonOf = (stop: Stop): string =>
  stop.cause === "session"
    ? stop.error.message
    : (stop.reason ?? (stop.cause === "deadline" ? "out of time" : "cancelled"))

/** The failure of a cause, or its defect as an error that events carry. */
export const errorOf = (
  cause: Cause.Cause<Failure.FailureReason>
): Failure.FailureReason | Failure.Defect => {
  const failure = Cause.findErrorOption(cause)
  return failure._tag === "Some" ? failure.value : Failure.defect(Cause.squash(cause))
}
