/** The program: parses the command line, and runs a prompt or a command. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import type { ConfigError } from "effect/Config"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import type * as HelpDoc from "effect/cli/HelpDoc"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as References from "effect/References"
import { stripVTControlCharacters } from "node:util"
import type { SessionError } from "../Session.ts"
import * as CommandLine from "./CommandLine.ts"
import * as ExitCode from "./ExitCode.ts"
import * as SettingTable from "./settings/SettingTable.ts"
import * as Inert from "./terminal/Inert.ts"
import * as StandardInput from "./terminal/StandardInput.ts"
import * as Screen from "./terminal/Screen.ts"
import * as Values from "./settings/Values.ts"

/** Runs the program and exits the process with its exit code. */
export const main = (args: ReadonlyArray<string>, version: string): void => {
  // Settings that parsing the command line already needs for its own output.
  const words = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  const early = {
    color: !words.includes("--no-color") && !isOn("EFFECT_AGENT_NO_COLOR"),
    verbose:
      words.includes("--verbose") || isOn("EFFECT_AGENT_VERBOSE") || (process.env["DEBUG"] ?? "") !== ""
  }
  Effect.runFork(
    program(args, version).pipe(
      Effect.catchCause((cause) => broken(cause, early.verbose)),
      Effect.provide(services(early))
    )
  ).addObserver((exit) => {
    // Exits although stdin may still be open: a pipe that stays open must not keep the process alive.
    process.exit(Exit.isSuccess(exit) ? exit.value : ExitCode.failed)
  })
}

const isOn = (variable: string): boolean =>
  Option.getOrElse(Values.truth(process.env[variable] ?? ""), () => false)

const program = (args: ReadonlyArray<string>, version: string) =>
  Effect.flatMap(ExitCode.orEnd(ready(args, version)), (next) => {
    if (typeof next === "number") return Effect.succeed(next)
    if ("serve" in next) return serve(next.serve)
    return "worker" in next ? worker(next.worker) : next.run
  }).pipe(
    Effect.catchTags({
      Ended: ({ ending }) => Effect.succeed(ExitCode.exitCode(ending)),
      UsageError: ({ message }) => complain(message),
      SessionError: ({ message }) => complain(message, ExitCode.failed),
      Failed: ({ message }) => complain(message, ExitCode.failed),
      ConfigError: ({ message }) => complain(message)
    }),
    // The presenter has shown the errors.
    Effect.catchIf(CliError.isCliError, () => Effect.succeed(ExitCode.usage))
  )

type Services = Layer.Success<ReturnType<typeof services>>

/** Runs a module that is loaded then. */
const loaded = <M, A, E, R>(load: () => Promise<M>, use: (module: M) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Effect.promise(load), use)

/** The commands beside a prompt, each loaded when it is called. */
const commandsOf = (
  version: string
): CommandLine.Commands<ConfigError | ExitCode.Failed | SessionError | ExitCode.UsageError, Services> => {
  const { env } = process
  return {
    acp: (flags) =>
      loaded(
        () => import("./commands/Acp.ts"),
        ({ run }) => run(flags, env, version)
      ),
    mcp: (flags) =>
      loaded(
        () => import("./commands/McpServer.ts"),
        ({ run }) => run(flags, env, version)
      ),
    mcpServers: (line) =>
      loaded(
        () => import("./commands/McpCommands.ts"),
        ({ run }) => run(line, env)
      ),
    approve: (line) =>
      loaded(
        () => import("./commands/SessionCommands.ts"),
        ({ approve }) => approve(line, env)
      ),
    sessions: (line) =>
      loaded(
        () => import("./commands/SessionCommands.ts"),
        ({ sessions }) => sessions(line, env)
      ),
    runs: (line) =>
      loaded(
        () => import("./commands/RunCommands.ts"),
        ({ run }) => run(line, env)
      ),
    models: (request) =>
      loaded(
        () => import("./commands/ModelList.ts"),
        ({ show }) => show(request, env)
      ),
    config: (request) =>
      loaded(
        () => import("./commands/ConfigList.ts"),
        ({ show }) => show(request, env)
      )
  }
}

const serve = (line: CommandLine.ServingLine) =>
  loaded(
    () => import("./commands/Serving.ts"),
    ({ serve }) => serve(line, process.env)
  )

const worker = (line: CommandLine.ServingLine) =>
  loaded(
    () => import("./commands/Serving.ts"),
    ({ worker }) => worker(line, process.env)
  )

/** Prepares a run, or returns the exit code of a command that is done. */
const ready = Effect.fnUntraced(function* (args: ReadonlyArray<string>, version: string) {
  const parsed = yield* CommandLine.parse(args, version, commandsOf(version))
  if ("code" in parsed) return parsed.code
  if ("serve" in parsed || "worker" in parsed) return parsed
  const { prepare } = yield* Effect.promise(() => import("./agent/PromptRun.ts"))
  return { run: yield* prepare(parsed.line, version) }
})

const complain = (message: string, code: number = ExitCode.usage) => Effect.as(Screen.complain(message), code)

/** Reports a defect or an unexpected failure. */
const broken = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, verbose: boolean) {
  const { err, paint } = yield* Screen.Screen
  const squashed = Cause.squash(cause)
  const message = squashed instanceof Error ? squashed.message : String(squashed)
  const hint = verbose ? `\n${Inert.text(Cause.pretty(cause))}` : " --verbose shows where."
  yield* err(`${paint.red("effect-agent:")} this is a bug: ${Inert.line(message)}.${hint}\n`)
  return ExitCode.failed
})

const services = ({ color, verbose }: { readonly color: boolean; readonly verbose: boolean }) => {
  const { env, stdout } = process
  const colors = Screen.wantsColours({ isTerminal: stdout.isTTY === true, flag: color, env })
  const stderrLogger = Logger.withConsoleError(Logger.map(Logger.formatLogFmt, Inert.text))
  return Layer.mergeAll(
    NodeServices.layer,
    ExitCode.layer,
    StandardInput.layer,
    Layer.sync(Screen.Screen, () => Screen.make({ color, env })),
    CliOutput.layer(grouped(CliOutput.defaultFormatter({ colors }))),
    CliOutput.layerPresenter({ present }),
    Logger.layer([stderrLogger]),
    Layer.succeed(References.MinimumLogLevel, verbose ? "Debug" : "None")
  )
}

/** Faults that a prompt without `--` makes. */
const promptFaults = new Set(["UnexpectedArgument", "UnknownSubcommand", "UnrecognizedOption"])

/** The error in sentences. */
const wordsOf = (error: CliError.CliError): string => {
  if (error._tag === "UnrecognizedOption") {
    const [nearest] = error.suggestions
    const command = (error.command ?? ["effect-agent"]).join(" ")
    return `Unrecognized flag: ${error.option} in command ${command}.${nearest === undefined ? "" : ` Did you mean ${nearest}?`}`
  }
  if (error._tag !== "InvalidValue") return error.message
  const [, kind] = /^Path is not a (file|directory)/.exec(error.expected) ?? []
  return kind === undefined
    ? error.message
    : `--${error.option}: ${JSON.stringify(error.value)} is no ${kind === "file" ? "file" : "folder"}.`
}

/** Errors of the command line go to stderr, one on each line, because stdout may be redirected to a file. */
const present = (event: CliOutput.Presenter.Event): Effect.Effect<void> =>
  event._tag === "InvalidInvocation"
    ? Effect.sync(() => {
        // A text such as `-x-is-this` is a fault for each of its letters.
        const faults = event.errors
          .slice(0, 3)
          .map((error) => `effect-agent: ${Inert.line(wordsOf(error))}\n`)
        const isPrompt = event.errors.some(({ _tag }) => promptFaults.has(_tag))
        const advice = isPrompt
          ? `A prompt that begins with a hyphen or the name of a command goes behind --: effect-agent -- "…".\n`
          : ""
        process.stderr.write(`${faults.join("")}${advice}Try effect-agent --help.\n`)
      })
    : CliOutput.defaultPresenter.present(event)

// ───────────────────────── The help

/** Fewer flags stay in one list. */
const minGrouped = 12

/** A formatter that writes many flags in the groups of the settings, and those that are no settings as a group of their own. */
const grouped = (base: CliOutput.Formatter): CliOutput.Formatter => ({
  ...base,
  formatHelpDoc: (doc) => {
    const text = base.formatHelpDoc(doc).split("\n").flatMap(spaced).join("\n")
    if (doc.flags.length < minGrouped) return text
    const sections = sectionsOf(doc.flags).map(([title, flags]) =>
      partsOf(base.formatHelpDoc({ ...doc, flags }))
        .filter(isFlagList)
        .map((part) => part.replace("FLAGS", title))
        .join("")
    )
    return partsOf(text)
      .flatMap((part) => (isFlagList(part) ? sections : [part]))
      .join("\n\n")
  }
})

/** The parts of a help, each with its title in the first line. */
const partsOf = (text: string): ReadonlyArray<string> => text.split("\n\n")

const isFlagList = (part: string): boolean => stripVTControlCharacters(part).startsWith("FLAGS\n")

/** The library puts the examples right below the commands. */
const spaced = (line: string, index: number, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  stripVTControlCharacters(line) === "EXAMPLES" && lines[index - 1] !== "" ? ["", line] : [line]

type Section = readonly [title: string, flags: ReadonlyArray<HelpDoc.FlagDoc>]

const sectionsOf = (flags: ReadonlyArray<HelpDoc.FlagDoc>): ReadonlyArray<Section> => {
  const titleOf = ({ name }: HelpDoc.FlagDoc) =>
    SettingTable.groups.find(({ names }) => names.has(`--${name}`))?.title ?? "OTHER FLAGS"
  const titles = [...SettingTable.groups.map(({ title }) => title), "OTHER FLAGS"]
  return titles
    .map((title): Section => [title, flags.filter((flag) => titleOf(flag) === title)])
    .filter(([, flags]) => flags.length > 0)
}
