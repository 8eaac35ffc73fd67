/** The texts that a person enters: commands of the session, commands of their shell, and prompts. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as NearestName from "../../internal/nearestName.ts"
import { ThinkingLevel } from "../../RunOptions.ts"
import * as ModelList from "../commands/ModelList.ts"
import * as Mode from "../agent/Mode.ts"
import * as TaskList from "../agent/TaskList.ts"
import { Failed } from "../ExitCode.ts"
import * as Inert from "../terminal/Inert.ts"
import * as Clipboard from "./Clipboard.ts"
import * as CommandTable from "./CommandTable.ts"
import * as Contents from "./Contents.ts"
import * as Context from "./Context.ts"
import * as FileCommands from "./FileCommands.ts"
import * as Footer from "./Footer.ts"
import * as Keyring from "./Keyring.ts"
import * as Keys from "./Keys.ts"
import * as McpCommands from "./McpCommands.ts"
import * as Panels from "./Panel.ts"
import * as PersonCommand from "./PersonCommand.ts"
import type { Face } from "./Face.ts"
import type { Session } from "./Session.ts"
import * as Switching from "./Switching.ts"

/** Carries out a text of the input. */
export const enter = Effect.fnUntraced(function* (
  session: Session,
  room: Face,
  text: string,
  how: "steer" | "queue"
) {
  const [, bang, shell = ""] = /^(!!?)([^]+)$/.exec(text) ?? []
  if (bang !== undefined) {
    yield* session.history.add(text)
    return yield* ofShell(session, shell.trim(), bang === "!")
  }
  const [, name, args = ""] = /^(\/[a-zA-Z-]*)(?:\s+([^]*))?$/.exec(text) ?? []
  if (name !== undefined) {
    yield* session.history.add(text)
    session.echo(text)
    return yield* command(session, room, name, args.trim())
  }
  yield* session.history.add(text)
  if (session.run === undefined) return yield* session.send(text)
  if (how === "steer") session.steer(text)
  else session.queue(text)
})

const command = Effect.fnUntraced(function* (session: Session, room: Face, name: string, args: string) {
  const row = CommandTable.find(name)
  if (row === undefined) {
    const nearest = nearestTo(name)
    return session.say(
      `Unknown command ${Inert.line(name)}.${nearest === undefined ? " /help lists them." : ` Did you mean ${nearest}?`}`
    )
  }
  if ("isAlone" in row && row.isAlone === true && session.isWorking)
    return session.say("Not while it works. Esc stops it.")
  yield* actions[row.name](session, args, room)
})

/** The command that a misspelt one probably means. One with its letters in another order is near. */
const nearestTo = (name: string): string | undefined => {
  const letters = (text: string) => [...text].toSorted().join("")
  const { names } = CommandTable
  return (
    names.find((one) => letters(one) === letters(name)) ??
    NearestName.of(name, names) ??
    names.find((one) => one.startsWith(name))
  )
}

/** Runs a command of the person, and keeps its output for the next prompt. */
const ofShell = (session: Session, command: string, isSent: boolean) =>
  Effect.sync(() => {
    const { settings, theme } = session
    session.face.print([theme.style("bold", `! ${Inert.line(command)}`)])
    const done = Effect.map(PersonCommand.run(command, settings.cwd), ({ code, output }) => {
      const lines = output.trimEnd() === "" ? [] : Inert.text(output.trimEnd()).split("\n")
      session.face.print(lines)
      if (code !== 0) session.note(`exit code ${code ?? "unknown"}`)
      if (isSent)
        session.remember(
          `$ ${command}\n${output.trimEnd()}${code === 0 ? "" : `\nExit code ${code ?? "unknown"}`}`
        )
    })
    if (session.run === undefined) session.busy(`Running ${Inert.line(command, 40)}`, done)
    else session.do(done)
  })

// ───────────────────────── The commands

type Action = (
  session: Session,
  args: string,
  room: Face
) => Effect.Effect<unknown, Error, Effect.Services<ReturnType<Session["send"]>>>

const help: Action = (session, args) =>
  Effect.sync(() => {
    const rows = CommandTable.table.map((row) => {
      const aliases = "aliases" in row ? ` (${row.aliases.join(", ")})` : ""
      return [`${row.name}${row.args === "" ? "" : ` ${row.args}`}${aliases}`, row.what] as const
    })
    const wanted = args === "" ? undefined : CommandTable.find(args.startsWith("/") ? args : `/${args}`)?.name
    if (args !== "" && wanted === undefined) return session.say(`Unknown command ${args}. /help lists them.`)
    const width = Math.min(40, Math.max(...rows.map(([name]) => name.length)))
    const lines = rows
      .filter(([name]) => wanted === undefined || name.split(" ")[0] === wanted)
      .map(([name, what]) => `${name.padEnd(width)}  ${what}`)
    const keys = Keys.table.map(({ idle, key, working }) =>
      working === "the same" || working === idle
        ? `${key}: ${idle}`
        : `${key}: ${idle}; while it works: ${working}`
    )
    session.say(...(wanted === undefined ? ["Commands", ...lines, "", "Keys", ...keys] : lines))
  })

const model: Action = Effect.fnUntraced(function* (session, args) {
  if (args === "") {
    const vendor = session.model.slice(0, session.model.indexOf("/"))
    const rows = yield* Effect.orElseSucceed(
      ModelList.find(vendor === "local" ? "" : vendor, process.env, { baseUrl: session.settings.baseUrl }),
      (): ReadonlyArray<ModelList.Row> => []
    )
    const items = rows.flatMap(({ model, provider }) =>
      model === undefined ? [] : [{ value: `${provider}/${model}`, label: `${provider}/${model}` }]
    )
    return session.show(
      Panels.list({
        title: `Model: ${session.model}`,
        items,
        pick: (name) => {
          session.hide()
          session.do(setModel(session, name))
        },
        cancel: () => session.hide()
      })
    )
  }
  yield* setModel(session, args)
})

const setModel = Effect.fnUntraced(function* (session: Session, text: string) {
  const [, named = text, effort] = /^(.+):([a-z]+)$/.exec(text) ?? []
  const isLevel = ThinkingLevel.literals.some((level) => level === effort)
  const name = isLevel ? named : text
  const chosen = yield* Effect.option(session.place.choose(name))
  if (Option.isNone(chosen)) {
    const near = yield* Effect.orElseSucceed(
      ModelList.find(name.slice(name.indexOf("/") + 1), process.env, { baseUrl: session.settings.baseUrl }),
      (): ReadonlyArray<ModelList.Row> => []
    )
    const names = near.flatMap(({ model, provider }) => (model === undefined ? [] : [`${provider}/${model}`]))
    return session.say(
      `No model ${JSON.stringify(Inert.line(name))}.${names.length === 0 ? "" : ` Near names: ${names.slice(0, 5).join(", ")}.`}`
    )
  }
  yield* session.setModel(chosen.value)
  if (isLevel && effort !== undefined) session.effort = effort
  session.say(`Model: ${chosen.value}${isLevel ? `, effort ${effort}` : ""}`)
})

const effort: Action = (session, args) =>
  Effect.sync(() => {
    const levels: ReadonlyArray<string> = ThinkingLevel.literals
    if (!levels.includes(args))
      return session.say(`No effort ${JSON.stringify(args)}. Levels: ${levels.join(", ")}.`)
    session.effort = args
    session.say(`Effort: ${args}`)
  })

const compact: Action = (session, args) =>
  Effect.sync(() => {
    const { agent } = session.place
    if (agent === undefined) return session.say("The server compacts its sessions by itself.")
    if (!session.isMade) return session.say("Nothing to compact.")
    session.busy(
      "Compacting",
      Effect.gen(function* () {
        const made = yield* agent(session.id)
        const { compaction, status } = yield* Effect.onInterrupt(
          made.compact(args === "" ? undefined : args),
          () => Effect.ignore(made.cancel("the user stopped it"))
        )
        if (status === "nothing" || compaction === undefined) return session.say("Nothing to compact.")
        session.context = compaction.tokensAfter ?? 0
        session.say(`Compacted: ${compaction.tokensBefore ?? "?"} → ${compaction.tokensAfter ?? "?"} tokens.`)
      })
    )
  })

const retry: Action = Effect.fnUntraced(function* (session) {
  const { last } = session
  if (last === undefined || !last.failed) return session.say("Nothing to send again.")
  session.replaces = last.messageId ?? session.replaces
  yield* session.send(last.text)
})

const queue: Action = (session, args) =>
  Effect.gen(function* () {
    const waiting = session.waiting
    const [, number] = /^rm\s+(\d+)$/.exec(args) ?? []
    if (number !== undefined) {
      const one = waiting[Number(number) - 1]
      if (one === undefined || one.how === "steer") return session.say(`Nothing waits as ${number}.`)
      session.waiting = waiting.filter((other) => other !== one)
      return session.say(`Removed: ${one.text}`)
    }
    if (args === "") {
      const lines = waiting.map(({ how, text }, index) => `${index + 1} ${how}: ${Inert.line(text)}`)
      return session.say(...(lines.length === 0 ? ["Nothing waits."] : lines))
    }
    if (session.run === undefined) yield* session.send(args)
    else session.queue(args)
  })

const steer: Action = (session, args) =>
  Effect.suspend(() => {
    if (args === "") return Effect.sync(() => session.say("Give a text: /steer TEXT"))
    if (session.run === undefined) return session.send(args)
    return Effect.sync(() => session.steer(args))
  })

const cost: Action = (session) =>
  Effect.sync(() => {
    const { modelCalls, ms, toolCalls } = session.spent
    const { cacheRead, cost, input, output } = session.usage
    const price = cost === undefined ? "price unknown" : `$${cost.toFixed(4)}`
    session.say(
      `Input ${input} · cached ${cacheRead} · output ${output} tokens · ${price} · ${modelCalls} model ${modelCalls === 1 ? "call" : "calls"} · ${toolCalls} tool ${toolCalls === 1 ? "call" : "calls"} · ${(ms / 1000).toFixed(1)} s`
    )
  })

const exported: Action = Effect.fnUntraced(function* (session, args) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = args === "" ? `effect-agent-${session.id8}.md` : args
  const file = path.resolve(session.settings.cwd, name)
  const write = Effect.gen(function* () {
    yield* files.writeFileString(file, yield* textFor(session, path.extname(file)), { mode: 0o600 })
    session.say(`Written: ${name}`)
  })
  if (!session.isMade) return session.say("There is nothing to write.")
  if (!(yield* files.exists(file))) return yield* write
  session.show(
    Panels.keys({
      title: [`${Inert.line(name)} exists. Replace it?`],
      keys: [
        [
          "y",
          "yes",
          () => {
            session.hide()
            session.do(write)
          }
        ],
        ["n", "no", () => session.hide()]
      ],
      cancel: () => session.hide()
    })
  )
})

const textFor = Effect.fnUntraced(function* (session: Session, ending: string) {
  const { runs } = session.place
  const title = session.name ?? `Session ${session.id8}`
  if (ending === ".json") return `${JSON.stringify(yield* runs.sessions.get(session.id), undefined, 2)}\n`
  if (ending === ".jsonl") {
    const { entries } = yield* runs.sessions.get(session.id)
    return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")
  }
  const messages = yield* Contents.messages(runs, session.id)
  if (ending === ".html") return Contents.html(title, messages)
  if (ending === ".md") return Contents.markdown(title, messages)
  return yield* new Failed({ detail: "A name ends with .md, .json, .jsonl or .html." })
})

const copy: Action = Effect.fnUntraced(function* (session, args) {
  const [, isCode, number = "1"] = /^(code)?\s*(\d+)?$/.exec(args) ?? []
  const messages = session.isMade ? yield* Contents.messages(session.place.runs, session.id) : []
  const answers = Contents.answers(messages)
  const all =
    isCode === undefined ? answers : answers.flatMap((answer) => Contents.codeIn(answer).toReversed())
  const text = all[Number(number) - 1]
  if (text === undefined)
    return session.say(isCode === undefined ? "There is no answer to copy." : "There is no code to copy.")
  const isCopied = yield* Clipboard.write(text)
  session.say(
    isCopied ? `Copied ${text.length} characters.` : "That is more than 100 kB: the terminal cannot take it."
  )
})

const permissions: Action = (session, args) =>
  Effect.sync(() => {
    const { allow, always, deny } = session.place.policy
    const added = [...always]
    const [, number] = /^rm\s+(\d+)$/.exec(args) ?? []
    if (number !== undefined) {
      const key = added[Number(number) - 1]
      if (key === undefined) return session.say(`There is no rule ${number}.`)
      always.delete(key)
      return session.say(`Removed: ${scopeOf(key)}`)
    }
    const rule = (words: string, { commands, tools }: typeof allow) => [
      ...[...tools].map((tool) => `${words} ${tool}`),
      ...commands.map((command) => `${words} shell(${command.join(" ")})`)
    ]
    session.say(
      `Mode: ${session.mode}`,
      ...rule("--allow", allow),
      ...rule("--deny", deny),
      ...added.map((key, index) => `${index + 1} always ${scopeOf(key)}`),
      ...(added.length === 0 ? ["No answer was always."] : ["/permissions rm N removes one."])
    )
  })

const tasks: Action = Effect.fnUntraced(function* (session, args) {
  if (args === "clear") {
    if (session.place.clearTasks === undefined) return session.say("The server has the list.")
    if (session.isMade) yield* session.place.clearTasks(session.id)
    session.tasks = TaskList.empty
    return session.say("Tasks cleared.")
  }
  const lines = Footer.taskLines(session.tasks, session.theme)
  session.say(
    ...(lines.length === 0 ? ["No tasks."] : [`Tasks ${TaskList.progress(session.tasks)}`, ...lines])
  )
})

const plan: Action = (session, args) =>
  Effect.suspend(() => {
    const isOn = session.mode === "plan"
    if (!isOn || args === "") {
      session.setMode(isOn ? "ask" : "plan")
      session.say(isOn ? "Plan mode off." : "Plan mode on.")
    }
    if (args === "") return Effect.void
    return session.run === undefined ? session.send(args) : Effect.sync(() => session.queue(args))
  })

const scopeOf = (key: string): string => {
  const [, name = "", words = key] = /^\["((?:[^"\\]|\\.)*)",([^]*)\]$/.exec(key) ?? []
  return Inert.line(`${name} ${words.replace(/^"([^]*)"$/, "$1")}`)
}

const hooks: Action = (session) =>
  Effect.sync(() => {
    const lines = session.place.hooks().map(({ command, isTrusted, last, matcher, point, source }) => {
      const result = last === undefined ? "" : ` · ${last.result} · ${(last.millis / 1000).toFixed(1)} s`
      return `${point} · ${matcher === "" ? "*" : matcher} · ${command} · ${source} · ${isTrusted ? "active" : "not trusted"}${result}`
    })
    session.say(...(lines.length === 0 ? ["No hooks."] : lines.map((line) => Inert.line(line, 1_000))))
  })

const actions: Readonly<Record<CommandTable.Name, Action>> = {
  "/help": help,
  "/model": model,
  "/effort": effort,
  "/context": (session) => Effect.map(Context.lines(session), (lines) => session.say(...lines)),
  "/compact": compact,
  "/undo": FileCommands.undo,
  "/redo": FileCommands.redo,
  "/rewind": Switching.rewind,
  "/sessions": Switching.sessions,
  "/resume": Switching.resume,
  "/new": Switching.fresh,
  "/fork": Switching.fork,
  "/name": Switching.name,
  "/retry": retry,
  "/queue": queue,
  "/steer": steer,
  "/tasks": tasks,
  "/plan": plan,
  "/mcp": McpCommands.mcp,
  "/login": Keyring.login,
  "/logout": Keyring.logout,
  "/cost": cost,
  "/export": exported,
  "/copy": copy,
  "/diff": FileCommands.diff,
  "/permissions": permissions,
  "/hooks": hooks,
  "/quit": (session, _args, room) =>
    Effect.sync(() => room.leave(session.run === undefined ? "quit" : "unfinished"))
}

/** Takes the next mode: ask, edits, plan. */
export const nextMode = (session: Session): Effect.Effect<void> =>
  Effect.sync(() => session.setMode(Mode.next(session.mode)))
