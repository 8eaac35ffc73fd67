/**
 * The server of a soak, in a process of its own, so that what is measured is the client: answers in the language of the
 * path, and treats one request in five badly. Started with the seed; says its port to who started it.
 */
import { createServer, type ServerResponse } from "node:http"
import { Random } from "../Random.ts"
import { type Called, speechOf } from "../speech.ts"

const random = new Random(Number(process.argv[2] ?? 1))
/** Of a hundred requests, so many are treated badly. */
const faulty = 20

let made = 0

/** Tools as the application of `soak.ts` has them; the slow ones are called seldom. */
const called = (): Called => {
  const id = `call_${++made}`
  const path = `note-${random.upTo(3)}.txt`
  if (random.once(40)) return { id, name: "shell", params: { command: "echo well; sleep 0.01" } }
  if (random.once(60)) return { id, name: "nobody", params: {} }
  if (random.once(60)) return { id, name: "look", params: { where: 7 } }
  return random.pick<Called>(
    { id, name: "look", params: { where: "there" } },
    { id, name: "look", params: { where: "here" } },
    { id, name: "read", params: { path } },
    { id, name: "write", params: { path, content: `line ${made}\n`.repeat(1 + random.upTo(40)) } }
  )
}

const answer = (path: string): string => {
  const calls = random.once(2) ? [] : Array.from({ length: 1 + random.upTo(2) }, called)
  return speechOf(path)("So it is. ".repeat(1 + random.upTo(30)), calls)
}

type Fault = (response: ServerResponse, body: string) => void

const begin = (response: ServerResponse, headers = {}): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream", ...headers })

const part = (body: string): string => body.slice(0, random.upTo(body.length - 1))

const status =
  (code: number, headers = {}, body = '{"error":{"message":"planned"}}'): Fault =>
  (response) =>
    response.writeHead(code, { "content-type": "application/json", ...headers }).end(body)

const reset = (response: ServerResponse): void => {
  response.socket?.resetAndDestroy()
}

const faults: readonly [Fault, ...ReadonlyArray<Fault>] = [
  reset,
  (response, body) => begin(response).write(part(body), () => reset(response)),
  // Silence, before the head and after a part: the client's patience ends it.
  () => {},
  (response, body) => begin(response).write(part(body)),
  // A keep-alive is no content.
  (response, body) => {
    begin(response).write(part(body))
    const ping = setInterval(() => response.write(": ping\n\n"), 50)
    response.on("close", () => clearInterval(ping))
  },
  // All was said, and the connection stays open.
  (response, body) => begin(response).write(body),
  status(429, { "retry-after": "0" }),
  status(429, { "retry-after-ms": "20" }),
  status(503),
  status(500, { "content-type": "text/html" }, "<html>Sorry</html>"),
  status(401),
  status(400),
  status(302, { location: "http://127.0.0.1:9/elsewhere" }),
  (response, body) => begin(response).end(part(body)),
  (response, body) =>
    begin(response, { "content-length": body.length + 100 }).write(body, () => reset(response)),
  (response) => begin(response).end(),
  (response) => begin(response).end(Buffer.from(Array.from({ length: 2000 }, () => random.upTo(255)))),
  (response) => begin(response).end("data: {\n\ndata: [1,2\n\ndata: nonsense\n\n"),
  (response) => begin(response, { "content-type": "text/html" }).end("<html>Hello</html>"),
  (response, body) => begin(response, { "content-encoding": "gzip" }).end(body)
]

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    const path = (request.url ?? "").replace(/\?.*/, "")
    const body = answer(path)
    if (random.upTo(99) < faulty) return random.pick(...faults)(response, body)
    begin(response)
    // In two pieces, so that a cut falls somewhere.
    const at = random.upTo(body.length)
    response.write(body.slice(0, at))
    setImmediate(() => response.end(body.slice(at)))
  })
})
server.on("connection", (socket) => socket.on("error", () => {}))
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.send?.(typeof address === "object" ? address?.port : undefined)
})
// Whoever started it is gone.
process.on("disconnect", () => process.exit())
