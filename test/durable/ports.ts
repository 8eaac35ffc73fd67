/** Ports for workers: below those that the system gives to outgoing connections. */
import { Effect } from "effect"
import { createServer } from "node:net"

/** A port on which nothing listens. */
export const freePort: Effect.Effect<number> = Effect.callback<number>((resume) => {
  const probe = createServer()
  const port = 20_000 + Math.floor(Math.random() * 10_000)
  probe.once("error", () => resume(freePort))
  probe.listen(port, "127.0.0.1", () => probe.close(() => resume(Effect.succeed(port))))
})
