/**
 * A model server on loopback that speaks Chat Completions. A test takes each request when it comes, and answers it piece by piece.
 */
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import { createServer, type Server, type ServerResponse } from "node:http"

export type Call = readonly [name: string, params: object]

export interface Message {
  readonly role: string
  /** The text parts, joined. */
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string }>
  /** The call that a result of a tool is of. */
  readonly callId: string | undefined
}

export interface Request {
  /** The request as it came. */
  readonly body: string
  readonly model: string
  readonly tools: ReadonlyArray<string>
  readonly messages: ReadonlyArray<Message>
  /** The texts of a role, in order. */
  readonly of: (role: "user" | "assistant" | "tool" | "system") => ReadonlyArray<string>
  /** Writes a piece of the answer. */
  readonly delta: (text: string) => Effect.Effect<void>
  /** Ends the answer. */
  readonly ends: Effect.Effect<void>
  /** Answers with a text. */
  readonly says: (text: string) => Effect.Effect<void>
  /** Answers with calls of tools. */
  readonly calls: (...calls: ReadonlyArray<Call>) => Effect.Effect<void>
  /** Answers with an error. */
  readonly fails: (
    status: number,
    message?: string,
    headers?: Readonly<Record<string, string>>
  ) => Effect.Effect<void>
  /** Bytes of the answer, as they are. */
  readonly raw: (bytes: Uint8Array | string) => Effect.Effect<void>
  /** Whether the program has gone away. */
  readonly isClosed: () => boolean
}

export interface Usage {
  readonly input: number
  readonly cached: number
  readonly output: number
}

export interface Model {
  readonly port: number
  /** All requests that came. */
  readonly requests: ReadonlyArray<Request>
  /** Waits for the next request, from the first one on. Fails with words after 15 seconds. */
  readonly next: Effect.Effect<Request>
  /** Answers each request from now on that no test takes, and those that came before. */
  readonly always: (answer: (request: Request) => Effect.Effect<void>) => Effect.Effect<void>
  /** Ends all connections, and refuses new ones. */
  readonly stop: Effect.Effect<void>
  /** Listens again, at the same port. */
  readonly start: Effect.Effect<void>
}

interface Choice {
  readonly delta: object
  readonly finish_reason: string | null
}

const chunk = (choices: ReadonlyArray<Choice>, usage?: object): string =>
  `data: ${JSON.stringify({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: choices.map((choice) => ({ index: 0, ...choice })),
    ...(usage === undefined ? {} : { usage })
  })}\n\n`

const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  return Array.isArray(content) ? content.map(({ text = "" }: { text?: string }) => text).join("") : ""
}

interface WireMessage {
  readonly role: string
  readonly content?: unknown
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<{ readonly id: string; readonly function: { readonly name: string } }>
}

interface WireRequest {
  readonly model: string
  readonly messages: ReadonlyArray<WireMessage>
  readonly tools?: ReadonlyArray<{ readonly function: { readonly name: string } }>
}

let calls = 0

const requestOf = (body: string, response: ServerResponse, usage: Usage): Request => {
  const parsed: WireRequest = JSON.parse(body)
  const messages = parsed.messages.map(({ content, role, tool_call_id, tool_calls = [] }) => ({
    role,
    text: textOf(content),
    calls: tool_calls.map(({ function: { name }, id }) => ({ id, name })),
    callId: tool_call_id
  }))
  const raw = (bytes: Uint8Array | string) =>
    Effect.sync(() => {
      if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(bytes)
    })
  const closes = (reason: string) =>
    Effect.andThen(
      raw(chunk([{ delta: {}, finish_reason: reason }]) + chunk([], usageOf(usage))),
      Effect.sync(() => void response.end("data: [DONE]\n\n"))
    )
  const delta = (content: string) =>
    raw(chunk([{ delta: { role: "assistant", content }, finish_reason: null }]))
  return {
    body,
    messages,
    delta,
    raw,
    model: parsed.model,
    tools: (parsed.tools ?? []).map(({ function: { name } }) => name),
    of: (role) => messages.filter((message) => message.role === role).map(({ text }) => text),
    ends: closes("stop"),
    says: (text) => Effect.andThen(delta(text), closes("stop")),
    calls: (...all) => {
      const tool_calls = all.map(([name, params], index) => ({
        index,
        id: `call_${++calls}`,
        type: "function",
        function: { name, arguments: JSON.stringify(params) }
      }))
      return Effect.andThen(
        raw(chunk([{ delta: { role: "assistant", tool_calls }, finish_reason: null }])),
        closes("tool_calls")
      )
    },
    fails: (status, message = "on fire", headers = {}) =>
      Effect.sync(() => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify({ error: { message, type: "server_error" } }))
      }),
    isClosed: () => response.closed
  }
}

const usageOf = ({ cached, input, output }: Usage) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
  prompt_tokens_details: { cached_tokens: cached }
})

/** A server until the scope closes. Each answer counts these tokens. Where no request comes, the error shows the screen. */
export const make = (
  usage: Usage = { input: 300, cached: 100, output: 20 },
  screen: () => string = () => ""
): Effect.Effect<Model, never, Scope.Scope> =>
  Effect.gen(function* () {
    const requests: Array<Request> = []
    const waiting: Array<(request: Request) => void> = []
    const untaken: Array<Request> = []
    let answer: ((request: Request) => Effect.Effect<void>) | undefined
    const take = (request: Request) => {
      requests.push(request)
      const waiter = waiting.shift()
      if (waiter !== undefined) waiter(request)
      else if (answer === undefined) untaken.push(request)
      else Effect.runFork(answer(request))
    }
    const listen = (port: number) =>
      Effect.promise(async () => {
        const server = createServer(async (request, response) => {
          let body = ""
          for await (const piece of request.setEncoding("utf8")) body += piece
          if (request.method === "POST" && request.url?.endsWith("/chat/completions") === true)
            take(requestOf(body, response, usage))
          else response.writeHead(404).end()
        }).listen(port, "127.0.0.1")
        await once(server, "listening")
        return server
      })
    const end = (server: Server) =>
      Effect.promise(async () => {
        if (!server.listening) return
        const closed = once(server, "close")
        server.close()
        server.closeAllConnections()
        await closed
      })
    let server = yield* listen(0)
    yield* Effect.addFinalizer(() => end(server))
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    const next = Effect.promise(
      () =>
        new Promise<Request>((resolve, reject) => {
          const request = untaken.shift()
          if (request !== undefined) return resolve(request)
          const timer = setTimeout(() => {
            waiting.splice(waiting.indexOf(taken), 1)
            reject(new Error(`No request ${requests.length + 1} came\n${screen()}`))
          }, 15_000)
          const taken = (request: Request) => {
            clearTimeout(timer)
            resolve(request)
          }
          waiting.push(taken)
        })
    )
    return {
      next,
      port,
      requests,
      always: (respond) =>
        Effect.suspend(() => {
          answer = respond
          return Effect.forEach(untaken.splice(0), respond, { discard: true })
        }),
      stop: Effect.suspend(() => end(server)),
      start: Effect.map(listen(port), (again) => {
        server = again
      })
    }
  })
