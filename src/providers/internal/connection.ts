/**
 * The connection that one response comes over.
 */
import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Body from "./body.ts"
import * as Plain from "./plain.ts"
import type { Redact } from "./secrets.ts"

/** A request. */
export interface Asking {
  readonly client: HttpClient.HttpClient.With<HttpClientError, Scope.Scope>
  readonly request: HttpClientRequest.HttpClientRequest
  readonly redact: Redact
}

/** Sends a request and waits for the head of its response. The scope releases the connection. */
export const open = (asking: Asking): Effect.Effect<Connection, HttpClientError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Scope.make(), (own) => {
      const opened = Effect.flatMap(sent(asking), (response) => answered(response, own))
      return restore(Scope.provide(opened, own)).pipe(
        Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))),
        Effect.tap((connection) => Effect.addFinalizer(() => connection.release))
      )
    })
  )

const sent = ({ client, redact, request }: Asking) => Plain.sent(client.execute(request), redact)

const answered = (
  response: HttpClientResponse.HttpClientResponse,
  scope: Scope.Closeable
): Effect.Effect<Connection> => {
  const { bytes, isDecoded } = Body.of(response)
  return Effect.map(
    Channel.toPullScoped(Stream.toChannel(bytes), scope),
    (pull) => new Connection(response, { isDecoded, pull, scope })
  )
}

/** The next bytes of a body. */
type Bytes = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, HttpClientError>

interface Parts {
  readonly isDecoded: boolean
  readonly pull: Bytes
  /** Closes the socket, unless the body was read to its end. */
  readonly scope: Scope.Closeable
}

/** An open connection. */
export class Connection {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** `false` if the body has an unknown encoding. */
  readonly isDecoded: boolean
  /** The next bytes of the body. */
  readonly pull: Bytes
  /** Closes the socket at once, unless the body was read to its end. */
  readonly close: Effect.Effect<void>
  private isFinishing = false

  constructor({ headers, status }: HttpClientResponse.HttpClientResponse, { isDecoded, pull, scope }: Parts) {
    this.status = status
    this.headers = headers
    this.isDecoded = isDecoded
    this.pull = pull
    this.close = Scope.close(scope, Exit.void)
  }

  /** Reports that the answer is complete. The release then reads to the end of the body, so that the client keeps the socket. */
  finish(): void {
    this.isFinishing = true
  }

  /** Closes the connection at once, unless the answer is complete. */
  get drop(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isFinishing ? Effect.void : this.close))
  }

  /** Closes the connection. Of a complete answer, a detached fiber does it at the end of the body, at most `grace` later. */
  get release(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.isFinishing) return this.close
      return Effect.flatMap(Effect.forkDetach(this.skip(maxRest), { startImmediately: true }), (rest) => {
        if (rest.pollUnsafe() !== undefined) return this.close
        const end = Effect.andThen(Effect.timeoutOption(Fiber.await(rest), grace), this.close)
        return Effect.asVoid(Effect.forkDetach(end))
      })
    })
  }

  /** Reads to the end of the body, if that is within `limit` bytes. */
  private skip(limit: number): Effect.Effect<void> {
    return Effect.matchEffect(this.pull, {
      onFailure: () => Effect.void,
      onSuccess: (pieces) => {
        const left = pieces.reduce((left, { length }) => left - length, limit)
        return left > 0 ? this.skip(left) : Effect.void
      }
    })
  }

  /** The start of the body as text: `limit` bytes or a little more, or fewer if the body ends or breaks before. */
  text(limit: number): Effect.Effect<string> {
    if (!this.isDecoded) return Effect.succeed("")
    const decoder = new TextDecoder()
    let text = ""
    let left = limit
    const more: Effect.Effect<void> = Effect.matchEffect(this.pull, {
      onFailure: () => Effect.void,
      onSuccess: (pieces) => {
        for (const bytes of pieces) {
          text += decoder.decode(bytes, { stream: true })
          left -= bytes.length
        }
        return left > 0 ? more : Effect.void
      }
    })
    return Effect.map(more, () => text)
  }
}

/** Whether an error of `pull` is the end of the body. `fetch` fails for a body that is absent, such as with status 204. */
export const isEnd = (error: HttpClientError | Cause.Done): boolean =>
  Cause.isDone(error) || error.reason._tag === "EmptyBodyError"

/** Servers end the body within one round trip of the last event. */
const grace = "100 millis"
/** Maximum bytes after the last event. A server that sends more does not end the body. */
const maxRest = 64 * 1024
