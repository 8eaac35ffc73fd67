/**
 * The real program, bundled as it is published, as a child process.
 */
import { Effect } from "effect"
import { build } from "esbuild"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { entryOf, program } from "../../scripts/bundle.config.ts"
import * as Responses from "../../harness/differential/streams/openAiResponses.ts"
import { homes } from "../faults/published.ts"

const repo = join(import.meta.dirname, "../..")
const home = mkdtempSync(join(tmpdir(), "effect-agent-cli-"))
/** Where the program and its `package.json` are, for all tests of a thread. */
export const bundle = mkdtempSync(join(homes, "program-"))
const bin = entryOf(join(bundle, "dist"))

let built: Promise<unknown> | undefined

/** Bundles the program before the first test of a thread that needs it, and cleans up behind the tests of a file. */
export const bundled = () => {
  beforeAll(async () => {
    mkdirSync(home, { recursive: true })
    copyFileSync(join(repo, "package.json"), join(bundle, "package.json"))
    await (built ??= build(program(join(bundle, "dist"))))
  }, 30_000)
  afterAll(() => rmSync(home, { recursive: true, force: true }))
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Options {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What is piped in. Default: nothing, at its end. `"open"`: a pipe that stays silent and open. */
  readonly stdin?: string
}

export interface Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Waits until stderr has said something that matches. */
  readonly says: (pattern: RegExp) => Promise<void>
}

/** The program with these arguments, as a command and its arguments. */
export const command = (args: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  bin,
  ...args
]

/** The variables that the program gets. */
export const environment = { PATH: process.env["PATH"] ?? "", HOME: home, CI: "true" }

/** Starts the program. Its environment has no keys, and does not look for local servers unless told. */
export const start = (args: ReadonlyArray<string>, options?: Options): Running =>
  startCommand(command(args), options)

/** Starts a line of a shell, in which `"$0" "$@"` is the program with its arguments. */
export const startIn = (line: string, args: ReadonlyArray<string>, options?: Options): Running =>
  startCommand(["/bin/sh", "-c", line, process.execPath, bin, ...args], options)

const startCommand = ([command = "", ...args]: ReadonlyArray<string>, options: Options = {}): Running => {
  const child = spawn(command, args, {
    cwd: options.cwd ?? home,
    env: { ...environment, ...options.env },
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"]
  })
  if (options.stdin !== undefined && options.stdin !== "open") child.stdin?.end(options.stdin)
  const said = { stdout: "", stderr: "" }
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (said.stdout += text))
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (said.stderr += text))
  const ended = once(child, "close").then(([code]) => ({ code, ...said }))
  const says = async (pattern: RegExp) => {
    while (!pattern.test(said.stderr) && child.exitCode === null) await once(child.stderr ?? child, "data")
  }
  return { child, ended, says }
}

/** Runs the program to its end. */
export const run = (args: ReadonlyArray<string>, options?: Options): Effect.Effect<Ended> =>
  Effect.acquireUseRelease(
    Effect.sync(() => start(args, options)),
    ({ ended }) => Effect.promise(() => ended),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** A folder of its own with these files. */
export const folder = (files: Readonly<Record<string, string>>): string => {
  const root = mkdtempSync(join(home, "work-"))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
  return root
}

/** A server on loopback while the test goes on. Gives its address. */
export const server = (respond: (request: IncomingMessage, body: string, response: ServerResponse) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const listening = createServer(async (request, response) => {
        let body = ""
        for await (const chunk of request.setEncoding("utf8")) body += chunk
        respond(request, body, response)
      }).listen(0, "127.0.0.1")
      await once(listening, "listening")
      return listening
    }),
    (listening) =>
      Effect.sync(() => {
        listening.close()
        listening.closeAllConnections()
      })
  ).pipe(Effect.map((listening) => `http://127.0.0.1:${(listening.address() as AddressInfo).port}`))

const isResponses = ({ req }: ServerResponse): boolean => req.url?.includes("/responses") === true

const cuts: Readonly<Record<string, string>> = {
  length: "max_output_tokens",
  content_filter: "content_filter"
}

/** An answer of Responses or Chat Completions, as the request wants it, one piece of text an event. */
export const says = (response: ServerResponse, texts: ReadonlyArray<string>, finish = "stop"): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  if (isResponses(response)) {
    const items = texts.length === 0 ? [] : [Responses.message(0, "output_text", texts)]
    response.end(Responses.answer(items, Responses.tokens(1, 1), cuts[finish]))
    return
  }
  for (const content of texts) send(response, { delta: { role: "assistant", content }, finish_reason: null })
  send(response, { delta: {}, finish_reason: finish })
  response.end("data: [DONE]\n\n")
}

/** An answer that says something, if that, and calls one tool. */
export const calls = (response: ServerResponse, name: string, params: object, said = ""): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  if (isResponses(response)) {
    const prose = said === "" ? [] : [Responses.message(0, "output_text", [said])]
    const items = [...prose, Responses.call(prose.length, "call_1", name, params)]
    response.end(Responses.answer(items, Responses.tokens(1, 1)))
    return
  }
  if (said !== "") send(response, { delta: { role: "assistant", content: said }, finish_reason: null })
  const call = {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name, arguments: JSON.stringify(params) }
  }
  send(response, { delta: { role: "assistant", tool_calls: [call] }, finish_reason: null })
  send(response, { delta: {}, finish_reason: "tool_calls" })
  response.end("data: [DONE]\n\n")
}

/** An answer of Chat Completions that calls several tools. */
export const callsAll = (
  response: ServerResponse,
  calls: ReadonlyArray<readonly [name: string, params: object]>
): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  const tool_calls = calls.map(([name, params], index) => ({
    index,
    id: `call_${index + 1}`,
    type: "function",
    function: { name, arguments: JSON.stringify(params) }
  }))
  send(response, { delta: { role: "assistant", tool_calls }, finish_reason: null })
  send(response, { delta: {}, finish_reason: "tool_calls" })
  response.end("data: [DONE]\n\n")
}

const send = (response: ServerResponse, choice: object): void => {
  const chunk = {
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, ...choice }]
  }
  response.write(`data: ${JSON.stringify(chunk)}\n\n`)
}
