/**
 * The session of the program, from outside: a home, a folder of work, a model, and terminals to start it on.
 */
import { Effect } from "effect"
import { globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Program from "../program.ts"
import * as Model from "./model.ts"
import * as Terminal from "./terminal.ts"

export interface Options {
  /** The files of the folder. */
  readonly files?: Readonly<Record<string, string>>
  /** The configuration of the user. */
  readonly config?: object
  readonly env?: Readonly<Record<string, string>>
  readonly usage?: Model.Usage
}

export interface Start extends Partial<Omit<Terminal.Options, "cwd">> {
  readonly cwd?: string
}

/** The name of the model. */
export const modelName = "openai-chat/gpt-4.1"

/** The line that the session begins with, behind the one that names the program. */
export const greeting = "/help for commands · Esc stops · Ctrl-D leaves"

/** A person's home with a folder of work, and the model that the program there uses. */
export const make = Effect.fnUntraced(function* (options: Options = {}) {
  let newest: Terminal.Terminal | undefined
  const model = yield* Model.make(options.usage, () => newest?.shown() ?? "")
  const home = Program.folder({})
  const cwd = join(home, "shop")
  mkdirSync(cwd)
  const put = (name: string, content: string) => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), content)
  }
  for (const [name, content] of Object.entries(options.files ?? {})) put(name, content)
  mkdirSync(join(home, "config/effect-agent"), { recursive: true })
  if (options.config !== undefined)
    writeFileSync(join(home, "config/effect-agent/config.json"), JSON.stringify(options.config))
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    SHELL: "/bin/sh",
    LANG: "C.UTF-8",
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_DATA_HOME: join(home, "data"),
    XDG_STATE_HOME: join(home, "state"),
    XDG_CACHE_HOME: join(home, "cache"),
    EFFECT_AGENT_NO_DETECT: "true",
    EFFECT_AGENT_SANDBOX: "off",
    EFFECT_AGENT_MODEL: modelName,
    OPENAI_API_KEY: "sk-test",
    OPENAI_BASE_URL: `http://127.0.0.1:${model.port}/v1`,
    ...options.env
  }
  const start = (args: ReadonlyArray<string> = [], started: Start = {}) =>
    Effect.tap(
      Terminal.open(Program.command(args), { cwd, ...started, env: { ...env, ...started.env } }),
      (terminal) =>
        Effect.sync(() => {
          newest = terminal
        })
    )
  return {
    model,
    home,
    cwd,
    env,
    /** Writes a file of the folder of work. */
    put,
    /** The text of a file of the folder of work, empty if it is not there. */
    text: (name: string) => {
      const file = join(cwd, name)
      return statSync(file, { throwIfNoEntry: false }) === undefined ? "" : readFileSync(file, "utf8")
    },
    /** Files anywhere in the home that have this name. */
    find: (name: string) => globSync(`**/${name}`, { cwd: home }).map((file) => join(home, file)),
    /** Starts the program on a terminal. */
    start,
    /** Starts the session, and waits until a person can type. */
    open: (args: ReadonlyArray<string> = [], started: Start = {}) =>
      Effect.tap(start(args, started), (terminal) =>
        terminal.until(
          "the session is open",
          () => terminal.scrollback().join("\n").includes(greeting) && /^>(?: |$)/m.test(terminal.view())
        )
      ),
    /** Runs the program without a terminal. */
    run: (args: ReadonlyArray<string>, stdin?: string) =>
      Program.run(args, { cwd, env, ...(stdin === undefined ? {} : { stdin }) }),
    /** The sessions of the folder, the newest first. */
    sessions: Effect.map(
      Program.run(["sessions", "list", "--json"], { cwd, env }),
      ({ stdout }): ReadonlyArray<{ readonly sessionId: string; readonly name?: string }> =>
        JSON.parse(stdout).items
    )
  }
})

/** A script that a test lets end by writing the file `go`; it ends by itself after a minute. */
export const waits = {
  "wait.sh": `echo began
n=0
while [ ! -e go ] && [ $n -lt 1200 ]; do
  sleep 0.05
  n=$((n+1))
done
echo over
`
}

/** The call that runs it. */
export const wait: Model.Call = ["shell", { command: "sh wait.sh" }]

/** How often a text contains another. */
export const count = (text: string, part: string): number => text.split(part).length - 1

/** Time goes by, where the contract counts it and nothing can be seen. */
export const pause = (millis: number) =>
  Effect.promise(() => new Promise<void>((resolve) => void setTimeout(resolve, millis)))

/** So long a panel takes no key, and some time more. */
export const settled = pause(900)
