/** A network to a server that cuts connections: before a message reaches the server, or before its answer comes back. */
import { Effect, type Scope } from "effect"
import { connect as dial, createServer, type Socket } from "node:net"

/** A way to a server. */
export interface Network {
  /** The URL of the server by this way. */
  readonly url: string
  /** Sets the share of messages that a cut swallows, 0 to 1. Messages to the server and answers have the same share. */
  readonly setShare: (share: number) => void
  /** The number of cuts. */
  readonly cuts: () => number
}

const random = (seed: number) => () => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** Opens a way to the server of a URL, until the scope closes. */
export const to = (url: string, seed: number): Effect.Effect<Network, never, Scope.Scope> =>
  Effect.gen(function* () {
    const next = random(seed)
    const target = new URL(url)
    const sockets = new Set<Socket>()
    let share = 0
    let cuts = 0
    const server = createServer((client) => {
      const upstream = dial({ host: target.hostname, port: Number(target.port), noDelay: true })
      const end = () => {
        client.destroy()
        upstream.destroy()
      }
      for (const [from, to] of [
        [client, upstream],
        [upstream, client]
      ] as const) {
        sockets.add(from)
        from.on("error", end)
        from.on("close", () => {
          sockets.delete(from)
          end()
        })
        from.on("data", (data) => {
          if (next() >= share) return void to.write(data)
          cuts++
          end()
        })
      }
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.callback<void>((resume) => {
          for (const socket of sockets) socket.destroy()
          server.close(() => resume(Effect.void))
        })
    )
    const address = server.address()
    const way = new URL(url)
    way.port = String(address !== null && typeof address === "object" ? address.port : 0)
    return { url: way.href, setShare: (given) => void (share = given), cuts: () => cuts }
  })
