/**
 * The connection that one response comes over, and what becomes of it.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import type { Answered, Failed, Told } from "../../internal/byteSource.ts"
import * as Body from "./body.ts"

/** Opens a response's body. To be released. `keep`: the client has put the socket away, for another request. */
export const open = (
  response: HttpClientResponse.HttpClientResponse,
  keep: () => void
): Effect.Effect<Connection> =>
  Effect.mapEager(Body.of(response), (body) => new Connection(response, body, keep))

/** The same for a response that came the client's own way. */
export const take = (answered: Answered, keep: () => void): Connection =>
  new Connection(answered, Body.ofSource(answered), keep)

interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

export class Connection {
  /** Kept as long as its body is read: Effect aborts the request of one that is garbage. */
  readonly response: Head
  readonly status: number
  readonly headers: Head["headers"]
  private readonly body: Body.Body | undefined
  private readonly keep: () => void
  /** Nothing comes any more. */
  private isEnded: boolean
  /** All that is of use has come, and the rest is read for the connection's sake. */
  private isFinishing = false
  /** Gives up on the rest. */
  private patience: Fiber.Fiber<void> | undefined = undefined

  constructor(response: Head, body: Body.Body | undefined, keep: () => void) {
    this.response = response
    this.status = response.status
    this.headers = response.headers
    this.body = body
    this.keep = keep
    this.isEnded = body === undefined
  }

  /** What is read is what the server meant. */
  get isDecoded(): boolean {
    return this.body?.isDecoded ?? true
  }

  /** The next bytes, `undefined` at the end. */
  read(told: Told, failed: Failed): void {
    if (this.isEnded || this.body === undefined) return told(undefined)
    this.body.read(
      (bytes) => {
        if (bytes === undefined) this.complete()
        told(bytes)
      },
      (cause) => {
        this.end()
        failed(cause)
      }
    )
  }

  /** Closes the socket at once. */
  cancel(): void {
    if (this.isEnded) return
    this.end()
    this.body?.cancel()
  }

  /** All that is of use has come. A server that now ends the body, as most do, can be asked over it again. */
  finish(): void {
    if (this.isFinishing) return
    this.isFinishing = true
    this.skip(maxRest)
  }

  private skip(left: number): void {
    if (left <= 0) return this.cancel()
    this.read((bytes) => bytes !== undefined && this.skip(left - bytes.length), ignore)
  }

  /** The body has been read to its end. */
  private complete(): void {
    if (this.isEnded) return
    this.end()
    if (!/\bclose\b/i.test(this.headers["connection"] ?? "")) this.keep()
  }

  private end(): void {
    this.isEnded = true
    this.patience?.interruptUnsafe()
  }

  /** Nobody reads any more. */
  get release(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.isEnded) return Effect.void
      const cancel = Effect.sync(() => this.cancel())
      if (!this.isFinishing) return cancel
      return Effect.map(Effect.forkDetach(Effect.delay(cancel, grace)), (fiber) => {
        this.patience = fiber
      })
    })
  }

  /** The start of the body as text, `limit` bytes or a little more; what there is of it, if it breaks or cannot be read. */
  text(limit: number): Effect.Effect<string> {
    if (!this.isDecoded) return Effect.succeed("")
    return Effect.callback<string>((resume) => {
      const decoder = new TextDecoder()
      let text = ""
      const done = () => resume(Effect.succeed(text))
      const more = (left: number) =>
        this.read((bytes) => {
          if (bytes === undefined) return done()
          text += decoder.decode(bytes, { stream: true })
          if (bytes.length < left) more(left - bytes.length)
          else done()
        }, done)
      more(limit)
    })
  }
}

const ignore = (): void => {}

/** Servers end the body within one round trip after the last event. */
const grace = Duration.millis(100)
/** Bytes after the last event: more is a server that does not end. */
const maxRest = 64 * 1024
