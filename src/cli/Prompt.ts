/** A prompt: chooses a model, reads what goes to it, and runs the agent once. Its modules are loaded when the program has one. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Plan } from "./AgentSetup.ts"
import type { Line } from "./CommandLine.ts"
import * as CommandSandbox from "./CommandSandbox.ts"
import * as Inert from "./Inert.ts"
import * as ModelChoice from "./ModelChoice.ts"
import * as Project from "./Project.ts"
import * as Screen from "./Screen.ts"
import * as Settings from "./Settings.ts"
import * as StandardInput from "./StandardInput.ts"

export { run } from "./Runner.ts"

/** Reads the settings and the prompt. */
export const prepare = Effect.fnUntraced(function* (line: Line) {
  const { prompt: words, ...flags } = line
  const { remarks, settings } = yield* Settings.read(flags, process.env)
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
  const plan: Plan = { settings, prompt, choice, output, project, shell: options }
  return plan
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
  const isResumed = settings.continue || Option.isSome(settings.resume)
  const whole = isOnStdin ? text : yield* StandardInput.promptOf(text, isResumed)
  if (whole === undefined) return undefined
  return files.length === 0 ? whole : [{ type: "text" as const, text: whole }, ...files]
})

const outputOf = Effect.fnUntraced(function* ({ outputSchema }: Settings.Settings) {
  if (Option.isNone(outputSchema)) return undefined
  const { read } = yield* Effect.promise(() => import("./OutputSchema.ts"))
  return yield* read(outputSchema.value)
})
