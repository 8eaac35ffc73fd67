/** The server of Node at an address, whose open connections do not delay the end of the program. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { createServer } from "node:http"
import type { Socket } from "node:net"
import type { OfServer } from "../settings/Settings.ts"

interface Options extends Pick<OfServer, "grace" | "headTime" | "keepAlive" | "maxConnections"> {
  readonly host: string
  readonly port: number
}

/** The time in which streams of runs that were let go of get to close. */
const flush = Duration.seconds(1)

/**
 * Serves an application until the scope closes, and succeeds with its address. Then it closes at once the connections on which no request is
 * open, and the others when `grace` is over.
 */
export const serve = Effect.fnUntraced(function* <R>(
  app: Layer.Layer<never, never, HttpServer.HttpServer | R>,
  { grace, headTime, host, keepAlive, maxConnections, port }: Options
) {
  const millis = (time: Option.Option<Duration.Duration>, usual: number) =>
    Math.ceil(Option.match(time, { onNone: () => usual, onSome: Duration.toMillis }))
  const headersTimeout = millis(headTime, 30_000)
  const server = createServer({
    keepAliveTimeout: millis(keepAlive, 75_000),
    headersTimeout,
    // The time of a body is that of the application. This one is for bodies that it does not read.
    requestTimeout: Math.max(300_000, headersTimeout),
    connectionsCheckingInterval: 5_000
  })
  server.maxConnections = Option.getOrElse(maxConnections, () => 10_000)
  /** The connections that have had no whole head: Node does not count them as idle. */
  const silent = new Set<Socket>()
  server.on("connection", (socket) => {
    silent.add(socket)
    socket.once("close", () => silent.delete(socket))
  })
  server.on("request", ({ socket }) => silent.delete(socket))
  const node = NodeHttpServer.layer(() => server, { host, port })
  const context = yield* Layer.build(Layer.provideMerge(app, node))
  const closing = Effect.gen(function* () {
    for (const socket of silent) socket.destroy()
    server.closeIdleConnections()
    yield* Effect.sleep(Duration.sum(grace, flush))
    server.closeAllConnections()
  })
  // Added last, so that it is the first step of the end.
  yield* Effect.addFinalizer(() => Effect.forkDetach(closing, { startImmediately: true }))
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})
