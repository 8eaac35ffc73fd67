/**
 * A real HTTP server on loopback that answers as a test says, and what it saw.
 */
import { Effect, type Scope } from "effect"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse
} from "node:http"

export interface Seen {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Server {
  /** As a provider wants it, up to and with the version. */
  readonly baseUrl: string
  readonly requests: ReadonlyArray<Seen>
  /** Ends when no client is connected any more. */
  readonly idle: Effect.Effect<void>
}

type Handler = (response: ServerResponse, seen: Seen, count: number) => void

/** Serves until the scope closes. `handler` gets the number of the request, from 1. */
export const serve = Effect.fnUntraced(function* (
  handler: Handler
): Effect.fn.Return<Server, never, Scope.Scope> {
  const requests: Array<Seen> = []
  const sockets = new Set<object>()
  const waiting: Array<() => void> = []
  const server = createServer((request, response) => {
    bodyOf(request, (body) => {
      const seen = { url: request.url ?? "", headers: request.headers, body }
      handler(response, seen, requests.push(seen))
    })
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      sockets.delete(socket)
      if (sockets.size === 0) for (const wake of waiting.splice(0)) wake()
    })
  })
  const idle = Effect.callback<void>((resume) => {
    if (sockets.size === 0) resume(Effect.void)
    else waiting.push(() => resume(Effect.void))
  })
  const origin = yield* opened(server)
  return { baseUrl: `${origin}/v1`, requests, idle }
})

/** Opens a server on a free port, until the scope closes, whoever is connected then. Gives its origin. */
export const opened = (server: HttpServer): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" ? address?.port : undefined
        resume(Effect.succeed(`http://127.0.0.1:${port}`))
      })
    }),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

const bodyOf = (request: IncomingMessage, then: (body: string) => void) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk) => chunks.push(chunk))
  request.on("end", () => then(Buffer.concat(chunks).toString()))
}

/** The bytes of events, each with this JSON as its data. */
export const events = (...data: ReadonlyArray<unknown>): string =>
  data.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`).join("")

/** Begins an event stream. */
export const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" })

/** Answers with a status, headers and a JSON body. */
export const refuse = (response: ServerResponse, status: number, body: unknown, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(typeof body === "string" ? body : JSON.stringify(body))
}
