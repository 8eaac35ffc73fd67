// A day with the session: the bundled program on a terminal, against a model on loopback whose answers stand here. Its screens are the
// pictures of `docs/program.md`. `npm run pictures` writes them.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { entryOf } from "./bundle.config.ts"
import { Terminal } from "./terminal.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "docs/pictures")

// ───────────────────────── The model

type Call = readonly [name: string, params: object]
/** `tokens`: the size of the request. */
type Answer = (response: ServerResponse, tokens: number) => void

/** The answers that come, one for each request. */
const answers: Array<Answer> = []
let calls = 0

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

const usage = (input: number, output: number) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } })}\n\ndata: [DONE]\n\n`

/** An answer with a text, and with calls. */
const says =
  (text: string, ...all: ReadonlyArray<Call>): Answer =>
  (response, tokens) => {
    response.write(chunk({ role: "assistant", content: text }))
    const tool_calls = all.map(([name, params], index) => ({
      index,
      id: `call_${++calls}`,
      type: "function",
      function: { name, arguments: JSON.stringify(params) }
    }))
    if (all.length > 0) response.write(chunk({ tool_calls }))
    const written = Math.ceil((text + JSON.stringify(all)).length / 4)
    response.end(chunk({}, all.length > 0 ? "tool_calls" : "stop") + usage(tokens, written))
  }

/** An answer that does not end. */
const begins =
  (text: string): Answer =>
  (response) =>
    void response.write(chunk({ role: "assistant", content: text }))

const server = createServer(async (request, response) => {
  let body = ""
  for await (const piece of request.setEncoding("utf8")) body += piece
  if (request.method !== "POST") return void response.writeHead(404).end()
  response.writeHead(200, { "content-type": "text/event-stream" })
  const answer = answers.shift() ?? says("The script has no more answers.")
  answer(response, Math.ceil(body.length / 4))
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const address = server.address()
const port = typeof address === "object" && address !== null ? address.port : 0

// ───────────────────────── The person

const home = realpathSync(mkdtempSync(join(tmpdir(), "effect-agent-pictures-")))
const shop = join(home, "shop")
const files = {
  "package.json": `{ "name": "shop", "type": "module", "scripts": { "test": "node test/cart.js" } }\n`,
  "src/cart.js": `const cents = (amount) => Math.round(amount * 100) / 100

/** The total of the lines of a cart. */
export const total = (lines) =>
  lines.reduce((sum, line) => sum + cents(line.price * line.count), 0)
`,
  "src/invoice.js": `import { total } from "./cart.js"

export const invoice = (lines) => ({ lines, total: total(lines) })
`,
  "test/cart.js": `import { total } from "../src/cart.js"

console.log("an empty cart:", total([]))
console.log("one line:", total([{ price: 4.2, count: 2.5 }]))
console.log("three lines:", total([1, 2, 3].map((count) => ({ price: 0.333, count }))))
await new Promise((resolve) => setTimeout(resolve, 4000))
console.log("all carts are right")
`
}
for (const [name, text] of Object.entries(files)) {
  mkdirSync(dirname(join(shop, name)), { recursive: true })
  writeFileSync(join(shop, name), text)
}
const env = {
  PATH: process.env["PATH"] ?? "",
  HOME: home,
  SHELL: "/bin/sh",
  LANG: "C.UTF-8",
  XDG_CONFIG_HOME: join(home, "config"),
  XDG_DATA_HOME: join(home, "data"),
  XDG_STATE_HOME: join(home, "state"),
  XDG_CACHE_HOME: join(home, "cache"),
  EFFECT_AGENT_SANDBOX: "off",
  EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
  OPENAI_API_KEY: "sk-pictures",
  OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`
}
const open = (args: ReadonlyArray<string>, rows = 26) =>
  new Terminal([process.execPath, entryOf(join(root, "dist")), ...args], { cwd: shop, env, rows })

const enter = "\r"
const altEnter = "\u001b\r"
const escape = "\u001b"

const picture = (terminal: Terminal, name: string, title: string, from = "") => {
  writeFileSync(join(folder, `${name}.svg`), terminal.svg(title, from))
  console.log(`\n── ${name}\n${terminal.text()}`)
}

const tasks = (...status: ReadonlyArray<string>): Call => {
  const texts = ["find where the total is rounded", "round once, at the end", "run the tests"]
  return ["tasks", { tasks: texts.map((text, index) => ({ text, status: status[index] })) }]
}

// ───────────────────────── The day

/** Reads, edits, runs the tests, steers, stops and takes the files back. */
const morning = async (): Promise<string> => {
  const terminal = open([])
  await terminal.shows("/help for commands")
  answers.push(
    says("", ["grep", { pattern: "total" }], ["read", { path: "src/cart.js" }]),
    says("The total is rounded **once per line** in `src/cart.js`, and the invoice adds the rounded lines.")
  )
  await terminal.keys("why does the total differ from the invoice?", enter)
  await terminal.shows("adds the rounded lines")
  await terminal.rests()
  picture(terminal, "first", "The first answer")

  const before = "  lines.reduce((sum, line) => sum + cents(line.price * line.count), 0)"
  const after = "  cents(lines.reduce((sum, line) => sum + line.price * line.count, 0))"
  answers.push(
    says("I round the sum, and then I run the tests.", tasks("done", "active", "pending"), [
      "edit",
      { path: "src/cart.js", oldText: before, newText: after }
    ])
  )
  await terminal.keys("round once, at the end", enter)
  await terminal.shows("Allow edit?")
  picture(terminal, "approval", "An approval with the diff", "> round once")
  answers.push(
    says("", tasks("done", "done", "active"), ["shell", { command: "npm test" }]),
    says("Rounded once, at the end. An empty cart has a total of 0."),
    begins("# Changes\n\nI look for ")
  )
  await terminal.answers("y")
  await terminal.shows("Allow shell?")
  await terminal.answers("a")
  await terminal.shows("three lines:")
  await terminal.keys("check an empty cart, too", enter, "then write the CHANGELOG", altEnter)
  await terminal.shows("next: then write")
  picture(terminal, "working", "A command runs, and two messages wait", "> round once")
  await terminal.shows("I look for")
  await terminal.keys(escape)
  await terminal.shows("Stopped.")
  await terminal.keys("/undo", enter)
  await terminal.shows("Restored")
  picture(terminal, "undo", "A stopped run, and the files back", "> check an empty")
  const id = /(\w{8})\s*$/.exec(terminal.text())?.[1] ?? ""
  await terminal.keys("/quit", enter)
  await terminal.ended()
  terminal.close()
  return id
}

/** Continues, plans, answers a question, changes the model and compacts. */
const afternoon = async (id: string): Promise<void> => {
  const terminal = open(["-r", id], 30)
  await terminal.shows("openai-chat/gpt-4.1 · ")
  await terminal.shows("An empty cart has")
  picture(terminal, "resume", "The session of the morning")
  answers.push(
    says("", ["read", { path: "src/invoice.js" }]),
    says("", [
      "propose_plan",
      {
        plan: "1. `total` of `src/cart.js` counts whole cents.\n2. `src/invoice.js` formats them.\n3. `npm test` checks both."
      }
    ])
  )
  await terminal.keys("/plan count in whole cents", enter)
  await terminal.shows("not now")
  picture(terminal, "plan", "A plan, before anything changes", "> count in whole")
  answers.push(
    says("", [
      "ask_user",
      {
        question: "How does the invoice write a total?",
        schema: { type: "string", enum: ["10.00 EUR", "€ 10.00"] }
      }
    ]),
    says("The invoice writes `10.00 EUR`.")
  )
  await terminal.answers("1")
  await terminal.shows("The model asks:")
  picture(terminal, "question", "A question of the model", "propose_plan")
  await terminal.answers("1")
  await terminal.shows("The invoice writes 10.00")
  await terminal.rests()
  await terminal.keys("/model openai-chat/gpt-4.1-mini", enter)
  await terminal.shows("Model:")
  await terminal.keys("/context", enter)
  await terminal.shows("Total")
  answers.push(
    says("The total was rounded per line; `src/cart.js` is as it was; the invoice writes `10.00 EUR`.")
  )
  await terminal.keys("/compact", enter)
  await terminal.shows("Compacted:")
  await terminal.keys("/cost", enter)
  await terminal.shows("model calls")
  picture(terminal, "context", "Another model, the context, a compaction and the cost", "The invoice writes")
  terminal.close()
}

/** The same for a screen reader. */
const evening = async (): Promise<void> => {
  const terminal = open(["--plain"], 24)
  await terminal.shows("/help for commands")
  answers.push(says("I run the tests.", ["shell", { command: "npm test" }]), says("All carts are right."))
  await terminal.keys("run the tests", enter)
  await terminal.shows("Allow shell?")
  await terminal.answers("y", enter)
  await terminal.shows("agent: All carts")
  picture(terminal, "lines", "Line mode")
  terminal.close()
}

mkdirSync(folder, { recursive: true })
try {
  await afternoon(await morning())
  await evening()
} finally {
  server.close()
  server.closeAllConnections()
  rmSync(home, { recursive: true, force: true })
}
process.exit(0)
