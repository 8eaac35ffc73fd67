/**
 * The progress of a call, for a client that wants to know.
 */
import * as McpSchema from "effect/ai/McpSchema"
import type * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"

/** Sends progress, with a message or without one, and waits until it is on its way. */
export type Progress = (message?: string) => Effect.Effect<void>

const none: Progress = () => Effect.void

/** The longest time without progress: clients give up a request after a minute of silence, some sooner. */
const heartbeat = "15 seconds"

/** Runs a call with the progress of the current request, which it sends also while the call says nothing. It sends none without a token. */
export const during = <A, E, R>(
  server: McpServer.McpServer["Service"],
  call: (progress: Progress) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | McpSchema.McpRequestContext> =>
  Effect.flatMap(make(server), (progress) =>
    progress === none
      ? call(none)
      : Effect.raceFirst(call(progress), Effect.forever(Effect.delay(progress(), heartbeat)))
  )

const make = (
  server: McpServer.McpServer["Service"]
): Effect.Effect<Progress, never, McpSchema.McpRequestContext> =>
  Effect.contextWith((context) => {
    const { requestMetadata } = Context.get(context, McpSchema.McpRequestContext)
    const token = tokenIn(requestMetadata)
    if (token === undefined) return Effect.succeed(none)
    let sent = 0
    const progress: Progress = (message) =>
      Effect.suspend(() =>
        server.notifications["notifications/progress"]({
          progressToken: token,
          progress: ++sent,
          ...(message === undefined ? {} : { message })
        })
      ).pipe(Effect.ignore, Effect.provideContext(context))
    return Effect.succeed(progress)
  })

const tokenIn = (metadata: unknown): string | number | undefined => {
  const token = Predicate.hasProperty(metadata, "progressToken") ? metadata.progressToken : undefined
  return typeof token === "string" || typeof token === "number" ? token : undefined
}
