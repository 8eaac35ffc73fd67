/** A prompt: chooses a model, reads what goes to it, and runs the agent once. Its modules are loaded when the program has one. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { Line } from "../CommandLine.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import * as Inert from "../terminal/Inert.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as Pasted from "../terminal/Pasted.ts"
import * as Project from "../settings/Project.ts"
import type { Plan } from "./Runner.ts"
import * as Screen from "../terminal/Screen.ts"
import * as SessionChoice from "./SessionChoice.ts"
import * as Settings from "../settings/Settings.ts"
import type * as SettingTable from "../settings/SettingTable.ts"
import * as StandardInput from "../terminal/StandardInput.ts"

export { run } from "./Runner.ts"

/** Reads the settings and the prompt. */
export const prepare = Effect.fnUntraced(function* (line: Line) {
  const { prompt: words, ...flags } = line
  const { commands, remarks, settings } = yield* settingsOf(flags)
  const prompt = yield* promptOf(words, settings)
  const output = yield* outputOf(settings)
  const [choice, { options, remark }] = yield* Effect.all(
    [ModelChoice.withFallbacks(settings, process.env), CommandSandbox.choose(settings)],
    { concurrency: 2 }
  )
  const { err, paint } = yield* Screen.Screen
  const sandbox = remark === undefined ? "" : `. ${remark}`
  const lines = [...remarks, `Model: ${choice.model} (${choice.why})${sandbox}`]
  yield* err(lines.map((line) => `${paint.dim(Inert.line(line))}\n`).join(""))
  const project = yield* Project.load(settings, process.env)
  const plan: Plan = { settings, prompt, choice, output, project, shell: options, commands }
  return plan
})

/** The settings. A session that continues has its folder and its model, unless a flag names others. */
const settingsOf = Effect.fnUntraced(function* (flags: SettingTable.Flags) {
  const first = yield* Settings.read(flags, process.env)
  const session = yield* SessionChoice.find(first.settings)
  const read = session === undefined ? first : yield* Settings.read(flags, process.env, session.file)
  const path = yield* Path.Path
  const here = path.resolve(first.settings.cwd)
  const folder = path.resolve(read.settings.cwd)
  const id = Option.fromUndefinedOr(session?.sessionId)
  const { fork, store } = first.settings
  return {
    // The session stays in its store, whatever its folder says.
    settings: {
      ...read.settings,
      store,
      continue: false,
      ...(Option.isSome(fork) ? { fork: id } : { resume: id })
    },
    commands: Pasted.of(first.place, first.picks),
    remarks: [...read.remarks, ...(folder === here ? [] : [`Folder: ${folder} (the session)`])]
  }
})

/** The first prompt, with its files. */
const promptOf = Effect.fnUntraced(function* (words: string, settings: Settings.Settings) {
  const {
    files,
    text,
    words: others
  } = settings.file.length > 0 || words.includes("@")
    ? yield* (yield* Effect.promise(() => import("./Attachments.ts"))).read(words, settings)
    : { files: [], text: words, words: [] }
  const { err, paint } = yield* Screen.Screen
  const notices = others.map((word) => paint.dim(`@${Inert.line(word)} names no file and stays text.`))
  yield* err(notices.map((notice) => `${notice}\n`).join(""))
  const isOnStdin = settings.inputFormat === "stream-json"
  if (isOnStdin && text.trim() === "" && files.length === 0) return undefined
  const whole = isOnStdin ? text : yield* StandardInput.promptOf(text, Option.isSome(settings.resume))
  if (whole === undefined) return undefined
  return files.length === 0 ? whole : [{ type: "text" as const, text: whole }, ...files]
})

const outputOf = Effect.fnUntraced(function* ({ outputSchema }: Settings.Settings) {
  if (Option.isNone(outputSchema)) return undefined
  const { read } = yield* Effect.promise(() => import("./OutputSchema.ts"))
  return yield* read(outputSchema.value)
})
