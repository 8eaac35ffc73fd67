/**
 * Converts the bytes of one answer to model events: the framing first, then the protocol. Pure and synchronous, so that
 * tests can cut the bytes anywhere without a network.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import type { ModelEvent } from "../../ModelEvent.ts"
import {
  InvalidRequest,
  Protocol as ProtocolFault,
  ProviderError,
  type Reason,
  ServerError,
  StreamTruncated
} from "../../ProviderError.ts"
import * as VendorText from "../../http/VendorText.ts"
import { maxDepth, nestsTooDeep } from "../../internal/json.ts"
import type { ReplyWriter } from "../../reply/ReplyWriter.ts"
import { type Frame, type Framing, joined, type Reader } from "../Framing.ts"
import { type Call, type Decoder, type Protocol, isReason } from "../Protocol.ts"
import { type Connection, type Silence, isEnd } from "./connection.ts"
import { badShape, inText, ofErrorEvent } from "./reading.ts"
import * as Json from "./json.ts"
import type { Redact } from "./secrets.ts"

/**
 * Maximum bytes of an answer, decompressed. Far above any answer of a model: a delta of a word takes about 200
 * bytes.
 */
const maxBytes = 256 * 1024 * 1024

/**
 * How strictly answers are read.
 *
 * **Details**
 *
 * `"strict"` fails an answer with a chunk that cannot be read, or with an end that nothing announces: a part of it may be missing.
 * `"lenient"` leaves such a chunk out, and takes such an end for the end of an answer that has content, unless the connection broke.
 * `unrepresented` of `ModelCallEnd` names each. Calls whose arguments are not complete never run.
 *
 * @since 0.2.0
 * @category models
 */
export type Wire = "strict" | "lenient"

/** How an answer is read. */
interface Ways {
  readonly protocol: Protocol
  readonly framing: Framing
  readonly redact: Redact
  /** Whether to forgive chunks that cannot be read, and an end without a stop reason (default: `false`). */
  readonly isLenient?: boolean
}

/** An answer that has begun: that of a new call, or the paused one which this one continues. */
interface Begun {
  readonly call: Call
  readonly decoder: Decoder
  readonly reply: ReplyWriter
}

export class Answer {
  /** `complete`, or the reason of the failure, once the answer is over. */
  outcome: "open" | "complete" | Reason = "open"

  private readonly protocol: Protocol
  private readonly call: Call
  private readonly redact: Redact
  private readonly isLenient: boolean
  private readonly decoder: Decoder
  private readonly reply: ReplyWriter
  private readonly reader: Reader
  private readonly incoming: Array<Frame> = []
  private bytes = 0
  private hasData = false
  /** Whether the connection failed. */
  private isCut = false
  /** Why the first chunk that was forgiven could not be read. */
  private forgiven: Reason | undefined = undefined

  constructor({ framing, isLenient = false, protocol, redact }: Ways, { call, decoder, reply }: Begun) {
    this.protocol = protocol
    this.reader = framing.reader()
    this.redact = redact
    this.isLenient = isLenient
    this.call = call
    this.decoder = decoder
    this.reply = reply
  }

  get over(): boolean {
    return this.outcome !== "open"
  }

  /** Not over, but complete if nothing follows. */
  get mayBeOver(): boolean {
    return !this.over && this.decoder.isComplete?.() === true
  }

  /** Reads bytes. Ignores them once the answer is over. */
  push(bytes: Uint8Array): void {
    this.bytes += bytes.length
    this.reader.push(bytes, this.incoming)
    this.read()
    if (!this.over) this.outcome = this.damage() ?? "open"
  }

  /** Must be called at the end of the body. */
  end(): void {
    if (this.over) return
    this.reader.end(this.incoming)
    this.read()
    if (!this.over) this.outcome = this.damage() ?? "open"
    if (!this.over) this.outcome = this.strayFailure() ?? this.finish(false)
    else if (isCutJson(this.outcome)) {
      this.outcome = new StreamTruncated({ detail: "The answer ended in the middle of an event" })
    }
  }

  /**
   * Must be called if the connection fails. An answer that is complete stays complete, and one that reported
   * its failure keeps that failure.
   */
  cut(reason: Reason): void {
    if (this.over) return
    this.isCut = true
    this.end()
    if (typeof this.outcome === "object" && isOurs(this.outcome)) this.outcome = reason
  }

  /** Returns the events since the last call. */
  take(): ReadonlyArray<ModelEvent> {
    return this.reply.take()
  }

  /** Why the reader of frames cannot continue. */
  private damage(): Reason | undefined {
    const { problem } = this.reader
    if (problem !== undefined) return problem
    if (this.bytes <= maxBytes) return undefined
    return new ProtocolFault({ kind: "tooLarge", detail: `The answer is larger than ${maxBytes} bytes` })
  }

  private read(): void {
    if (this.incoming.length === 0) return
    for (const event of this.incoming) {
      if (this.over) break
      this.readEvent(event)
    }
    this.incoming.length = 0
  }

  private readEvent(frame: Frame): void {
    const { data } = frame
    const first = data.charCodeAt(0)
    // A gateway that forwards a comment as data.
    if (first === 0x3a && !isNamed(frame)) return
    if (nestsTooDeep(data)) this.outcome = badShape(`Nested more than ${maxDepth} deep`, data)
    else if ((first !== 0x5b && first !== 0x20) || !this.readList(frame)) this.readData(frame)
  }

  private readData(frame: Frame): void {
    this.hasData = true
    const { data, event } = frame
    if (event === "error") {
      this.outcome = ofErrorEvent(this.redact(VendorText.shortened(data)), this.call.model)
      return
    }
    const isLast = this.decoder.step(frame)
    if (isReason(isLast)) this.refuse(data, this.redacted(data, isLast))
    else if (this.reply.problem !== undefined) this.outcome = this.reply.problem
    else if (isLast) this.outcome = this.finish(true)
  }

  /** Ends the answer with a failure, unless the data says nothing or is forgiven. */
  private refuse(data: string, reason: Reason): void {
    const isUnreadable =
      reason._tag === "Protocol" && (reason.kind === "badJson" || reason.kind === "badShape")
    if (isUnreadable && isKeepAlive(data)) return
    if (isUnreadable && this.isLenient && !isError(data)) {
      this.forgiven ??= reason
      this.reply.note(
        `a chunk that cannot be read: ${VendorText.cut(this.redact(VendorText.shortened(data)), 80)}`
      )
    } else this.outcome = reason
  }

  /** Reads data that starts with a bracket: the sentinel or a list of events. The name of a frame is that of one event. */
  private readList(frame: Frame): boolean {
    const { data, event } = frame
    const isSentinel = this.protocol.sentinel !== undefined || !isNamed(frame) || event === "done"
    if (isSentinel && isDone(data)) {
      // Some gateways add the sentinel to every protocol.
      if (this.protocol.sentinel !== undefined) this.outcome = this.finish(true)
      return true
    }
    if (isNamed(frame)) return false
    const list = Json.parse(data)
    if (!Json.isArray(list)) return false
    for (const item of list) {
      if (!this.over) this.readData({ event: "", data: JSON.stringify(item) })
    }
    return true
  }

  /** The failure that the data reports, without secrets. */
  private redacted(data: string, reason: Reason): Reason {
    const clean = this.redact(VendorText.shortened(data))
    if (clean === data) return reason
    const again = this.decoder.step({ event: "", data: clean })
    return isReason(again) ? again : ofErrorEvent(clean, this.call.model)
  }

  /** An error that a server printed outside of events. */
  private strayFailure(): Reason | undefined {
    const stray = this.redact(this.reader.stray).trim()
    if (stray === "") return undefined
    const failure = inText(stray, this.call.model)
    if (failure !== undefined || this.hasData) return failure
    return new ProtocolFault({
      kind: "contentType",
      detail: `Not an event stream: ${VendorText.cut(stray, 200)}`,
      body: VendorText.excerpt(stray)
    })
  }

  private finish(sawEnd: boolean): "complete" | Reason {
    if (!this.hasData && !sawEnd) return new ProtocolFault({ kind: "empty", detail: "The answer was empty" })
    const missing = this.decoder.end(sawEnd)
    if (missing === undefined || this.goesWithoutEnd(missing)) return "complete"
    if (this.forgiven === undefined || this.reply.length > 0) return this.reworded(missing)
    return new StreamTruncated({ detail: `No chunk of the answer can be read: ${this.forgiven.detail}` })
  }

  /** Ends an answer that lacks nothing but its end, where that is forgiven. */
  private goesWithoutEnd({ _tag }: Reason): boolean {
    if (!this.isLenient || this.isCut || _tag !== "StreamTruncated" || this.reply.length === 0) return false
    this.reply.note("an end without a stop reason")
    return this.decoder.end(false, true) === undefined
  }

  /** Removes secrets from a reason whose text came with an earlier event. */
  private reworded(reason: Reason): Reason {
    const detail = this.redact(VendorText.shortened(reason.detail))
    if (detail === reason.detail) return reason
    return reason._tag === "InvalidRequest" ? new InvalidRequest({ detail }) : new ServerError({ detail })
  }
}

/** Whether data is what servers send to keep a connection open. */
const isKeepAlive = (data: string): boolean =>
  data.length < 20 &&
  /^\s*(?:null|""|"?(?:ping|pong|keep[-_ ]?alive|heartbeat|processing|waiting)"?)\s*$/i.test(data)

/** Whether data is an error in words, and no damaged chunk. */
const isError = (data: string): boolean => !/^\s*[{[]/.test(data) && /error|exception|traceback/i.test(data)

const isDone = (data: string): boolean => data.length < 20 && data.trim().toUpperCase() === "[DONE]"

/** This client detects truncated and invalid answers. The server reports all other reasons. */
const isOurs = ({ _tag }: Reason): boolean => _tag === "StreamTruncated" || _tag === "Protocol"

const isCutJson = (outcome: string | Reason): boolean =>
  typeof outcome === "object" && outcome._tag === "Protocol" && outcome.kind === "badJson"

/** Whether the server names the event, so that its data belong to it. */
const isNamed = ({ event }: Frame): boolean => event !== "" && event !== "message"

// ───────────────────────── Reading

// An answer as a pull of model events.
//
// It reads bytes only when its reader pulls events, so a slow reader slows the server. No queue stands between the
// connection and the reader.

type Events = Arr.NonEmptyReadonlyArray<ModelEvent>
/** The next events of an answer. */
type Next = Pull.Pull<Events, ProviderError>

/** The parts of a reading. */
interface Parts {
  readonly provider: string
  readonly connection: Connection
  readonly answer: Answer
  readonly silence: Silence
  /** The reason for an error of the connection. */
  readonly broken: (cause: unknown) => Reason
}

/** Makes the pull of an answer. One fiber of the scope reads the connection, and a second one watches the time limits. */
export const openReading = Effect.fnUntraced(function* (
  parts: Parts
): Effect.fn.Return<Next, never, Scope.Scope> {
  const reading = new Reading(parts)
  const fiber = yield* Effect.forkScoped(reading.run, { startImmediately: true })
  const stalled = Effect.flatMap(parts.silence.passed, (reason) => reading.stop(reason, fiber))
  yield* Effect.forkScoped(stalled, { startImmediately: true })
  // Runs first: a reader that leaves closes the socket before the two fibers end.
  yield* Effect.addFinalizer(() => parts.connection.drop)
  return reading.pull
})

/**
 * A reading in two fibers, so that a time limit can interrupt a read without the fiber of the reader. They wait for each
 * other by `Deferred`, which resumes a fiber at once.
 */
class Reading {
  private readonly parts: Parts
  /** Completes when the reader waits for bytes. */
  private wanted = Deferred.makeUnsafe<void>()
  /** Completes when bytes have arrived, or the body has ended. */
  private arrived = Deferred.makeUnsafe<void>()
  /** Whether the reader waits for the end of an answer that may be over. */
  private isEnding = false
  /** The cause of a defect, such as of a protocol that throws. */
  private defect: Cause.Cause<never> | undefined = undefined

  constructor(parts: Parts) {
    this.parts = parts
  }

  /** The next events. Ends as soon as the answer is over, even if the server keeps the body open. */
  readonly pull: Next = Effect.suspend(() => this.ready() ?? this.begin())

  /** Begins to wait for an event. */
  private begin(): Next {
    const { answer, silence } = this.parts
    this.isEnding = answer.mayBeOver
    if (this.isEnding) silence.startEnd()
    else silence.startContent()
    return this.wait()
  }

  /** Waits for bytes until they complete an event. */
  private wait(): Next {
    this.arrived = Deferred.makeUnsafe()
    Deferred.doneUnsafe(this.wanted, Effect.void)
    return Effect.flatMap(Deferred.await(this.arrived), this.proceed)
  }

  private readonly proceed = (): Next => {
    const ready = this.ready()
    if (ready !== undefined) return ready
    return this.parts.answer.mayBeOver && !this.isEnding ? this.begin() : this.wait()
  }

  /** The events that are complete, or else the end of an answer that is over. */
  private ready(): Next | undefined {
    const { answer, connection, provider, silence } = this.parts
    const { outcome } = answer
    if (outcome === "complete") connection.finish()
    const events = answer.take()
    if (Arr.isReadonlyArrayNonEmpty(events)) {
      silence.stop()
      return Effect.succeed(events)
    }
    if (!answer.over) return this.defect && Effect.failCause(this.defect)
    return typeof outcome === "string"
      ? Cause.done()
      : Effect.fail(new ProviderError({ provider, reason: outcome }))
  }

  /** Reads bytes each time that the reader waits for some, until the answer is over. */
  get run(): Effect.Effect<void> {
    const { answer, broken, connection } = this.parts
    const next = (): Effect.Effect<void> => Effect.flatMap(Deferred.await(this.wanted), () => read)
    const read = Effect.matchEffect(connection.pull, {
      onFailure: (error) => {
        if (isEnd(error)) answer.end()
        else answer.cut(broken(error))
        return Effect.sync(() => this.resume())
      },
      onSuccess: (pieces) => {
        // The reader of events decodes the pieces that arrived together once.
        answer.push(joined(pieces))
        this.resume()
        return answer.over ? Effect.void : next()
      }
    })
    return Effect.onError(next(), (cause) =>
      Effect.sync(() => {
        this.defect = cause
        this.resume()
      })
    )
  }

  /** Stops reading. The events so far stay, and the answer fails unless it may be over. */
  stop(reason: Reason, reader: Fiber.Fiber<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.parts.answer.cut(reason)
      this.resume()
      return Fiber.interrupt(reader)
    })
  }

  /** Resumes the reader. */
  private resume(): void {
    this.wanted = Deferred.makeUnsafe()
    Deferred.doneUnsafe(this.arrived, Effect.void)
  }
}
