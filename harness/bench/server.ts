/**
 * The model, as a process of its own: Chat Completions over loopback. What it says is in the name of the model, such as
 * `stream-50000-1`, so one server plays every workload.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"

/** What was asked for: the numbers of the model's name, how many tools have answered, and where to answer. */
interface Ask {
  readonly numbers: ReadonlyArray<number>
  readonly results: number
  readonly prompt: string
  readonly response: ServerResponse
}

/** What the server has seen since it was last asked. */
const seen = { requests: 0, open: 0, closedAt: new Map<string, bigint>() }

const chunk = (choices: ReadonlyArray<object>, more: object = {}): string =>
  `data: ${JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1,
    model: "bench",
    system_fingerprint: "fp_0",
    choices,
    ...more
  })}\n\n`

const delta = (delta: object, finish_reason: string | null = null): string =>
  chunk([{ index: 0, delta, logprobs: null, finish_reason }])

const text = (content: string): string => delta({ content })

const opening = delta({ role: "assistant", content: "" })
const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
const ended = (reason: string): ReadonlyArray<string> => [
  delta({}, reason),
  chunk([], { usage }),
  "data: [DONE]\n\n"
]

/** What the last answer of each run says. */
const answer = [opening, text("all "), text("done"), ...ended("stop")]

const argument = (index: number, json: string): string =>
  delta({ tool_calls: [{ index, function: { arguments: json } }] })

/** A call whose arguments come in so many pieces. */
const call = (
  index: number,
  id: number,
  name: string,
  json: string,
  pieces: number
): ReadonlyArray<string> => {
  const cut = (piece: number) => Math.floor((piece * json.length) / pieces)
  const begun = { index, id: `call_${id}`, type: "function", function: { name, arguments: "" } }
  return [
    delta({ tool_calls: [begun] }),
    ...Array.from({ length: pieces }, (_, n) => argument(index, json.slice(cut(n), cut(n + 1))))
  ]
}

/** Each event is one HTTP chunk. They leave together: it is the socket that is corked, an answer would join its chunks. */
const send = (response: ServerResponse, events: ReadonlyArray<string>): boolean => {
  response.socket?.cork()
  const isRoom = events.map((event) => response.write(event)).every(Boolean)
  response.socket?.uncork()
  return isRoom
}

const sayAll = (response: ServerResponse, events: ReadonlyArray<string>): void => {
  send(response, events)
  response.end()
}

const words = ["alfa", "brav", "char", "delt", "echo", "foxt", "golf", "hote"].map(text)

/** So many deltas of four characters, so many of them in one HTTP chunk. */
const stream = async ({ numbers: [count = 0, together = 1], response }: Ask): Promise<void> => {
  send(response, [opening])
  for (let said = 0; said < count; ) {
    const slab: Array<string> = []
    for (; slab.length < 500 && said < count; said += together) {
      const events = Array.from({ length: Math.min(together, count - said) }, (_, n) => words[(said + n) % 8])
      slab.push(events.join(""))
    }
    if (!send(response, slab)) await once(response, "drain")
  }
  sayAll(response, ended("stop"))
}

/** So many turns that call one small tool, each answered after so many milliseconds. */
const tools = ({ numbers: [turns = 0, delay = 0], response, results }: Ask): void => {
  const events =
    results < turns
      ? [opening, ...call(0, results, "tick", `{"n":${results}}`, 3), ...ended("tool_calls")]
      : answer
  if (delay === 0) sayAll(response, events)
  else setTimeout(() => sayAll(response, events), delay)
}

/** One call with so many characters of arguments, in so many pieces. */
const args = ({ numbers: [size = 0, pieces = 1], response, results }: Ask): void => {
  const json = () => JSON.stringify({ body: 'const x = f("y", 42);\n'.repeat(size / 22 + 1).slice(0, size) })
  sayAll(
    response,
    results === 0 ? [opening, ...call(0, 0, "save", json(), pieces), ...ended("tool_calls")] : answer
  )
}

/** So many calls in one answer. */
const parallel = ({ numbers: [count = 0], response, results }: Ask): void => {
  const calls = () => Array.from({ length: count }, (_, n) => call(n, n, "wait", `{"n":${n}}`, 2)).flat()
  sayAll(response, results === 0 ? [opening, ...calls(), ...ended("tool_calls")] : answer)
}

/** So many deltas, one every so many milliseconds, each with the time at which it was written. */
const clock = ({ numbers: [count = 0, every = 5], response }: Ask): void => {
  send(response, [opening])
  let said = 0
  const timer = setInterval(() => {
    if (said++ < count) return void response.write(text(`${process.hrtime.bigint()};`))
    clearInterval(timer)
    sayAll(response, ended("stop"))
  }, every)
}

/** Speaks until its reader leaves, and remembers when that was. The prompt is the run's name. */
const endless = ({ numbers: [every = 2], prompt, response }: Ask): void => {
  send(response, [opening, text("on ")])
  const timer = setInterval(() => response.write(text("and on ")), every)
  response.once("close", () => {
    clearInterval(timer)
    seen.closedAt.set(prompt, process.hrtime.bigint())
  })
}

const plays: Readonly<Record<string, (ask: Ask) => void | Promise<void>>> = {
  stream,
  tools,
  args,
  parallel,
  clock,
  endless
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts).toString()
}

const textOf = (content: string | ReadonlyArray<{ readonly text?: string }>): string =>
  typeof content === "string" ? content : content.map(({ text = "" }) => text).join("")

const play = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  seen.requests++
  const { messages, model } = JSON.parse(await bodyOf(request))
  const [kind = "", ...numbers] = String(model).split("-")
  let results = 0
  let prompt = ""
  for (const { content, role } of messages) {
    if (role === "tool") results++
    if (role === "user") prompt = textOf(content)
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
  await plays[kind]?.({ numbers: numbers.map(Number), results, prompt, response })
}

/** Tells what was seen, and forgets it. */
const report = (response: ServerResponse): void => {
  const closedAt = Object.fromEntries([...seen.closedAt].map(([name, at]) => [name, String(at)]))
  response.setHeader("connection", "close")
  response.end(JSON.stringify({ ...seen, closedAt }))
  seen.requests = 0
  seen.closedAt.clear()
}

const server = createServer((request, response) => {
  if (request.method === "GET") return report(response)
  play(request, response).catch((error: unknown) =>
    response.destroy(error instanceof Error ? error : undefined)
  )
})
server.keepAliveTimeout = 120_000
server.on("connection", (socket) => {
  seen.open++
  socket.setNoDelay(true)
  socket.on("close", () => seen.open--)
})
server.listen({ port: 0, host: "127.0.0.1", backlog: 8192 }, () => {
  const address = server.address()
  process.send?.({ port: typeof address === "object" ? address?.port : undefined })
})
process.on("disconnect", () => process.exit(0))
