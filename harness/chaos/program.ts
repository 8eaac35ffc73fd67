/**
 * The interactive program on a pseudo-terminal, killed with SIGKILL at a random moment of a prompt that writes, edits and runs commands. After
 * each kill `-c` opens the session with its prompts, a prompt works, `/undo` restores what a prompt changed, no file is half written, and the
 * session is not damaged.
 */
import { Effect, type Scope } from "effect"
import { build } from "esbuild"
import { copyFileSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { entryOf, program as bundled } from "../../scripts/bundle.config.ts"
import type { Call, Message, Request } from "../../test/cli/interactive/model.ts"
import * as Home from "../bench/program/Home.ts"
import * as Bundled from "./Bundled.ts"
import type { Chaos, Options, Outcome } from "./Chaos.ts"
import * as Contents from "./files/Contents.ts"
import { Random } from "./Random.ts"

export const program: Chaos = { count: 100, unit: "kills", run: (options) => Effect.scoped(run(options)) }

/** Kills of one folder: each session goes on where the one before it was killed. */
const killsOfFolder = 5

const repo = join(import.meta.dirname, "../..")

const run = Effect.fnUntraced(function* ({
  count,
  say,
  seed
}: Options): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const folder = yield* Bundled.folder("program")
  copyFileSync(join(repo, "package.json"), join(folder, "package.json"))
  yield* Effect.promise(() => build(bundled(join(folder, "dist"))))
  const random = new Random(seed)
  const violations: Array<string> = []
  const figures = { kills: 0, "in a run": 0, "with changes": 0, conflicts: 0 }
  while (figures.kills < count) {
    const kills = Math.min(killsOfFolder, count - figures.kills)
    const of = `seed ${seed}, kills ${figures.kills + 1} to ${figures.kills + kills}`
    const broken = yield* Effect.scoped(folderOf(entryOf(join(folder, "dist")), random, kills, figures)).pipe(
      Effect.catchCause((cause) => Effect.succeed([String(cause)]))
    )
    violations.push(...broken.map((what) => `${of}: ${what}`))
    for (const what of broken) say(`BROKEN ${what}`)
    say(`${figures.kills} kills, ${violations.length} violations`)
  }
  return { figures, violations }
})

interface Counts {
  kills: number
  "in a run": number
  "with changes": number
  conflicts: number
}

/** Files a and b at the beginning, and after some calls. A command moves its file into place, since a shell's own writes may stop half-way. */
const files = ["a", "b"]

const contentOf = (letter: string): string => `head\n${Contents.lines(letter)}`

const callOf = (random: Random): Call => {
  const file = random.pick("a", "b", "c")
  const letter = String.fromCharCode(97 + random.upTo(25))
  switch (random.upTo(3)) {
    case 0:
      return ["write", { path: file, content: contentOf(letter) }]
    case 1:
      return ["edit", { path: file, oldText: "head", newText: "head" + letter }]
    case 2:
      return [
        "shell",
        { command: `test -e ${file} && sed '2,$s/./${letter}/g' ${file} > .next$$ && mv .next$$ ${file}` }
      ]
    default:
      return ["shell", { command: `rm -f ${file}; sleep 0.0${random.upTo(9)}` }]
  }
}

/** Some kills in a folder of their own. Succeeds with the promises that broke. */
const folderOf = Effect.fnUntraced(function* (entry: string, random: Random, kills: number, counts: Counts) {
  const home = yield* Home.make({ entry })
  const broken: Array<string> = []
  for (const name of files) home.put(name, contentOf(name))
  yield* home.model.always((request) => reply(random, request, broken))
  const prompts: Array<string> = []
  const first = "prompt 0 first"
  yield* Effect.scoped(
    Effect.gen(function* () {
      const started = yield* home.open(["--yes"])
      yield* started.terminal.type(`${first}\r`)
      yield* Home.answered(started, "Done with prompt 0.")
      yield* Home.leave(started)
    })
  )
  prompts.push(first)
  for (let kill = 1; kill <= kills; kill++) {
    const where = (what: string) => broken.push(`kill ${kill} of the folder: ${what}`)
    const begun = Contents.ofFolder(home.cwd)
    const text = `prompt ${kill * 2 - 1} killed`
    const requests = home.model.requests.length
    yield* Effect.scoped(killed(home, text, random.upTo(1_500), prompts.at(-1) ?? "", where))
    counts.kills++
    if (home.model.requests.length > requests) counts["in a run"]++
    // Commands that the process has left behind end by themselves.
    yield* Effect.sleep("400 millis")
    broken.push(...Contents.halfWritten(home.cwd))
    yield* Effect.scoped(judged(home, { begun, text, next: kill * 2 }, prompts, counts, where))
    broken.push(...Contents.halfWritten(home.cwd), ...damagedIn(home))
    if (broken.length > 0) break
  }
  return broken
})

/** Sends a prompt to the session that continues, and kills the program so many milliseconds later. */
const killed = Effect.fnUntraced(function* (
  home: Home.Home,
  text: string,
  after: number,
  last: string,
  where: (what: string) => void
) {
  const { pid, terminal } = yield* home.open(["-c", "--yes"])
  if (!terminal.scrollback().join("\n").includes(last)) where(`-c does not show ${last}`)
  yield* terminal.type(`${text}\r`)
  yield* Effect.sleep(after)
  process.kill(pid(), "SIGKILL")
  yield* terminal.until("the end", () => !terminal.isRunning(), Home.patience)
})

/** Continues behind a kill, and takes back what its prompt changed. */
const judged = Effect.fnUntraced(function* (
  home: Home.Home,
  { begun, next, text }: { readonly begun: Contents.Contents; readonly text: string; readonly next: number },
  prompts: Array<string>,
  counts: Counts,
  where: (what: string) => void
) {
  const started = yield* home.open(["-c", "--yes"])
  const { terminal } = started
  // The run that was killed goes on.
  yield* isQuiet(terminal)
  const shown = terminal.scrollback().join("\n")
  const last = prompts.at(-1) ?? ""
  if (!shown.includes(last)) where(`-c does not show ${last}:\n${shown}`)
  if (/damag|broken|not read/i.test(shown)) where(`-c has a complaint:\n${shown}`)
  const isKept = shown.includes(text)
  if (isKept) prompts.push(text)
  const before = Contents.ofFolder(home.cwd)
  if (!Contents.isSame(begun, before)) counts["with changes"]++
  const prompt = `prompt ${next} after`
  yield* terminal.type(`${prompt}\r`)
  yield* Home.answered(started, `Done with prompt ${next}.`)
  prompts.push(prompt)
  const undo: (to: Contents.Contents, of: string) => Effect.Effect<void> = Effect.fnUntraced(
    function* (to, of) {
      const mark = terminal.bytes().length
      yield* terminal.type("/undo\r")
      const said = () => terminal.bytes().slice(mark)
      const words = /Restored \d+ files|Nothing to undo|changed since|✗/
      yield* terminal.until("the words of /undo", () => words.test(said()), Home.patience)
      for (let n = 0; n < 5 && said().includes("changed since"); n++) {
        if (/Restored \d+ files/.test(said())) break
        if (n === 0) counts.conflicts++
        yield* terminal.type("o")
        yield* Effect.sleep("300 millis")
      }
      // A prompt after this one has left the files as they were.
      if (said().includes("Restored 0 files, removed 0.")) return yield* undo(to, of)
      if (!Contents.isSame(Contents.ofFolder(home.cwd), to))
        where(
          `/undo of ${of} restores other files: ${Contents.difference(home.cwd, to)}\n${terminal.shown()}`
        )
    }
  )
  // A prompt that has changed nothing is passed over.
  if (!Contents.isSame(before, Contents.ofFolder(home.cwd))) yield* undo(before, prompt)
  if (isKept && !Contents.isSame(begun, before)) yield* undo(begun, text)
  yield* Home.leave(started)
})

/** Waits until nothing has worked for half a second. */
const isQuiet = Effect.fnUntraced(function* (terminal: Home.Started["terminal"]) {
  for (let since = Date.now(); Date.now() - since < 500; yield* Effect.sleep("50 millis"))
    if (terminal.view().includes("Working ")) since = Date.now()
})

/** Lines of a session that are no JSON. */
const damagedIn = ({ env }: Home.Home): ReadonlyArray<string> => {
  const data = env["XDG_DATA_HOME"] ?? ""
  return readdirSync(data, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) =>
      readFileSync(join(data, name), "utf8")
        .split("\n")
        .flatMap((line, index) => (line === "" || isJson(line) ? [] : [`${name}:${index + 1} is damaged`]))
    )
}

const isJson = (line: string): boolean => {
  try {
    JSON.parse(line)
    return true
  } catch {
    return false
  }
}

/** Answers with some calls, and then with a text; finds requests that a vendor would refuse. */
const reply = (random: Random, request: Request, broken: Array<string>) => {
  const { messages } = request
  const open = new Set<string>()
  for (const { callId, calls, role } of messages) {
    if (role !== "tool" && open.size > 0)
      broken.push(`a request has calls without results: ${[...open].join()}`)
    if (role !== "tool") open.clear()
    for (const { id } of calls) open.add(id)
    if (callId !== undefined && !open.delete(callId))
      broken.push(`a request has a result of no call: ${callId}`)
  }
  const numberOf = ({ role, text }: Message) => (role === "user" ? /prompt (\d+)/.exec(text)?.[1] : undefined)
  // The program adds messages of its own behind a prompt.
  const from = messages.findLastIndex((message) => numberOf(message) !== undefined)
  const turns = messages.slice(from).filter(({ role }) => role === "assistant").length
  const number = messages.map(numberOf)[from] ?? "0"
  const isOver = turns >= 1 + (Number(number) % 3)
  const answer = isOver
    ? request.says(`Done with prompt ${number}.`)
    : request.calls(...[...Array(1 + random.upTo(1)).keys()].map(() => callOf(random)))
  return Effect.andThen(Effect.sleep(random.upTo(60)), answer)
}
