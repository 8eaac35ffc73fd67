/**
 * The program on a pseudo-terminal, in a home of its own, with a model on loopback that answers by a script.
 */
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Model from "../../../test/cli/interactive/model.ts"
import * as Terminal from "../../../test/cli/interactive/terminal.ts"
import * as Process from "./Process.ts"

/** The second of the lines that a session begins with. */
const greeting = "/help for commands"

/** The variables of a session in which the program looks for no sandbox and no local server. */
export const unprobed = { EFFECT_AGENT_NO_DETECT: "true", EFFECT_AGENT_SANDBOX: "off" }

export interface Options {
  /** The entry of the program. */
  readonly entry: string
  readonly env?: Readonly<Record<string, string>>
}

/** How long a busy machine may take for anything. */
export const patience = { timeout: 60_000 }

/** Notes the time and the id of the process, and becomes the program. */
const line = `date +%s%N > "$0"; echo $$ >> "$0"; exec "$@"`

/** A home with a folder of work, which is a work tree of git. */
export const make = Effect.fnUntraced(function* ({ entry, env: given = unprobed }: Options) {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-agent-home-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  const cwd = join(home, "work")
  mkdirSync(cwd)
  execFileSync("git", ["init", "-q"], { cwd })
  const model = yield* Model.make()
  const probe = Process.probe(home)
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    SHELL: "/bin/sh",
    LANG: "C.UTF-8",
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_DATA_HOME: join(home, "data"),
    XDG_STATE_HOME: join(home, "state"),
    XDG_CACHE_HOME: join(home, "cache"),
    EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
    OPENAI_API_KEY: "sk-bench",
    OPENAI_BASE_URL: `http://127.0.0.1:${model.port}/v1`,
    ...given
  }
  let starts = 0
  const start = Effect.fnUntraced(function* (args: ReadonlyArray<string>, isProbed = false) {
    const file = join(home, `start-${++starts}`)
    const command = ["/bin/sh", "-c", line, file, process.execPath, entry, ...args]
    const terminal = yield* Terminal.open(command, {
      cwd,
      env: isProbed ? { ...env, ...probe.env } : env
    })
    const noted = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n") : [])
    const pid = () => Number(noted()[1])
    return {
      terminal,
      pid,
      /** The time at which the program began, in milliseconds since the epoch. */
      from: () => Number(noted()[0]) / 1e6,
      cpu: () => Process.cpu(pid()),
      memory: () => probe.memory(pid())
    }
  })
  return {
    cwd,
    env,
    model,
    start,
    put: (name: string, content: string) => writeFileSync(join(cwd, name), content),
    /** Starts the session, and waits until a person can type. */
    open: (args: ReadonlyArray<string> = [], isProbed = false) =>
      Effect.tap(start(args, isProbed), ({ terminal }) => isOpen(terminal))
  }
})

export type Home = Effect.Success<ReturnType<typeof make>>
export type Started = Effect.Success<ReturnType<Home["start"]>>

/** Waits until the first lines and the input are on the screen. */
export const isOpen = (terminal: Terminal.Terminal) =>
  terminal.until(
    "the session is open",
    () => {
      const view = terminal.scrollback().join("\n")
      return view.includes(greeting) && /^>(?: |$)/m.test(view)
    },
    patience
  )

/** Leaves an idle session. */
export const leave = ({ terminal }: Started) =>
  Effect.andThen(
    terminal.key("Ctrl-D"),
    terminal.until("the end", () => !terminal.isRunning(), patience)
  )

/** Waits until the run has ended, and the screen shows its answer. */
export const answered = ({ terminal }: Started, text: string) =>
  terminal.until(
    `the answer ${text}`,
    () => {
      const view = terminal.view()
      return view.includes(text) && !view.includes("Esc stops · Enter") && !view.includes("Working ")
    },
    patience
  )
