/** Finds a port for the socket of a worker. */
import * as Effect from "effect/Effect"
import { createServer } from "node:net"
import { UsageError } from "./ExitCode.ts"

/** The first one that is tried. It is below those that systems give to outgoing connections. */
export const first = 4112
const last = first + 99

/** Whether no one listens there. The server of the worker reports whatever else is wrong with an address. */
const isFree = (host: string, port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const probe = createServer()
    probe.once("error", ({ code }: NodeJS.ErrnoException) => resume(Effect.succeed(code !== "EADDRINUSE")))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resume(Effect.succeed(true))))
  })

/** The first free port of an address. */
export const at = (host: string, port = first): Effect.Effect<number, UsageError> =>
  Effect.flatMap(isFree(host, port), (is) => {
    if (is) return Effect.succeed(port)
    return port < last
      ? at(host, port + 1)
      : Effect.fail(new UsageError({ detail: `No port from ${first} to ${last} of ${host} is free.` }))
  })
