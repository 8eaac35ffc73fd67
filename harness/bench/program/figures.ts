/**
 * The figures of the interactive program, each measured from outside: on the screen, in bytes, in the CPU and memory of the process.
 */
import { Effect } from "effect"
import type { Request } from "../../../test/cli/interactive/model.ts"
import * as Sequences from "../../../test/cli/interactive/sequences.ts"
import { Random } from "../../chaos/Random.ts"
import type { Figures } from "../workloads.ts"
import * as Frames from "./Frames.ts"
import * as Home from "./Home.ts"

const cols = 100
const rows = 30

/** From the start of the process to the first lines and the input, and its CPU until then. */
export const firstPaint = (entry: string, env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { start } = yield* Home.make({ entry, env })
    // The first start fills the cache of the disk.
    yield* Effect.scoped(Effect.flatMap(start([]), painted))
    return yield* Effect.scoped(Effect.flatMap(start([]), painted))
  }).pipe(Effect.scoped)

const painted = Effect.fnUntraced(function* (started: Home.Started) {
  yield* Home.isOpen(started.terminal)
  const now = performance.timeOrigin + performance.now()
  const figures: Figures = { paint: now - started.from(), paintCpu: started.cpu() }
  yield* Home.leave(started)
  return figures
})

/** Prose, a word a delta. */
const wordOf = (n: number): string => {
  const word = ["The", "total", "is", "rounded", "once", "per", "line", "of", "the", "invoice"][n % 10] ?? ""
  if (n % 60 === 59) return `${word}.\n\n`
  return n % 12 === 11 ? `${word}\n` : `${word} `
}

/** Gives 50 deltas a second by the clock, until it is interrupted. */
const stream = ({ delta }: Request) =>
  Effect.gen(function* () {
    const from = performance.now()
    for (let n = 0; ; n++) {
      yield* delta(wordOf(n))
      yield* Effect.sleep(Math.max(0, from + (n + 1) * 20 - performance.now()))
    }
  })

/** Letters that no delta has. */
const letters = ["ß", "ø", "ñ", "é", "å"]

/** CPU, bytes and the echo of typed characters while an answer streams. */
export const streaming = (entry: string, seconds: number) =>
  Effect.gen(function* () {
    const { model, open } = yield* Home.make({ entry })
    const started = yield* open()
    const { terminal } = started
    yield* terminal.type("tell me\r")
    const request = yield* model.next
    yield* Effect.forkScoped(stream(request))
    yield* Effect.sleep("3 seconds")
    const mark = terminal.bytes().length
    const before = { cpu: started.cpu(), at: performance.now() }
    yield* Effect.sleep(seconds * 1000)
    const cpu = (started.cpu() - before.cpu) / ((performance.now() - before.at) / 1000)
    const bytes = terminal.bytes()
    const echoes: Array<number> = []
    for (let n = 0; n < seconds * 2; n++) {
      const letter = letters[n % letters.length] ?? ""
      const sent = terminal.bytes().length
      const at = performance.now()
      yield* terminal.type(letter)
      yield* terminal.until("the letter", () => terminal.bytes().slice(sent).includes(letter), Home.patience)
      echoes.push(performance.now() - at)
      yield* Effect.sleep(170 + ((n * 37) % 90))
    }
    const { changed, frames, written } = yield* Effect.promise(() => Frames.sums(bytes, mark, cols, rows))
    const sorted = echoes.toSorted((one, other) => one - other)
    const figures: Figures = {
      stream: cpu,
      echo: sorted[Math.floor(sorted.length / 2)] ?? NaN,
      echoMax: sorted.at(-1) ?? NaN,
      bytes: written / changed,
      frames: frames / seconds
    }
    return figures
  }).pipe(Effect.scoped)

/** CPU of a session in which nothing happens, after an answer. */
export const idle = (entry: string, seconds: number) =>
  Effect.gen(function* () {
    const { model, open } = yield* Home.make({ entry })
    const started = yield* open()
    yield* started.terminal.type("hello\r")
    yield* (yield* model.next).says("Hello there.")
    yield* Home.answered(started, "Hello there.")
    yield* Effect.sleep("3 seconds")
    const before = started.cpu()
    yield* Effect.sleep(seconds * 1000)
    const figures: Figures = { idle: (started.cpu() - before) / seconds }
    return figures
  }).pipe(Effect.scoped)

const memoryOf = (started: Home.Started) => Effect.promise(() => started.memory())

/** What the memory of a session grows by over so many megabytes of the output of commands. */
export const output = (entry: string, megabytes: number) =>
  Effect.gen(function* () {
    const { model, open, put } = yield* Home.make({ entry })
    put("talk.sh", `yes "a line of output that is as long as others, number $1" | head -c 1000000\n`)
    yield* model.always((request) =>
      request.messages.at(-1)?.role === "tool"
        ? request.says(`Answer ${request.of("user").length}.`)
        : request.calls(["shell", { command: `sh talk.sh ${request.of("user").length}` }])
    )
    const started = yield* open(["--yes"], true)
    const play = (n: number) =>
      Effect.andThen(started.terminal.type(`go ${n}\r`), Home.answered(started, `Answer ${n}.`))
    yield* play(1)
    yield* play(2)
    const before = yield* memoryOf(started)
    for (let n = 3; n <= megabytes + 2; n++) yield* play(n)
    const after = yield* memoryOf(started)
    const figures: Figures = {
      output: after.held - before.held,
      outputResident: after.resident - before.resident
    }
    return figures
  }).pipe(Effect.scoped)

/** What the memory of a session grows by over so many turns, and how long it takes to open it again. */
export const turns = (entry: string, count: number) =>
  Effect.gen(function* () {
    const { model, open, start } = yield* Home.make({ entry })
    yield* model.always((request) => request.says(`Answer ${request.of("user").length} of many.`))
    const started = yield* open([], true)
    const warm = Math.min(20, count >> 1)
    let before = yield* memoryOf(started)
    for (let n = 1; n <= count; n++) {
      yield* started.terminal.type(`prompt ${n}\r`)
      yield* Home.answered(started, `Answer ${n} of many.`)
      if (n === warm) before = yield* memoryOf(started)
    }
    const after = yield* memoryOf(started)
    yield* Home.leave(started)
    const again = yield* start(["-c"])
    const { terminal } = again
    yield* terminal.until(
      "the last answer",
      () => /^>(?: |$)/m.test(terminal.view()) && terminal.view().includes(`Answer ${count} of many.`),
      Home.patience
    )
    const opened = performance.timeOrigin + performance.now() - again.from()
    const figures: Figures = {
      turns: after.held - before.held,
      turnsResident: after.resident - before.resident,
      open: opened,
      openCpu: again.cpu()
    }
    yield* Home.leave(again)
    return figures
  }).pipe(Effect.scoped)

const pieces = [
  ..."\u001b,\u001b[,\u001b],\u009b,\u009d,\u001b[2J,\u001b[3J,\u001b[31m,\u001b[?1049h,\u001b[?1003h,\u001bc,\u0007,\b,\r".split(
    ","
  ),
  "\u001b]0;evil\u0007",
  "\u001b]52;c;ZXZpbA==\u001b\\",
  "\u001b]8;;http://example.com\u001b\\",
  "\u001b]9;evil\u0007",
  "\u001bP$q\u001b\\",
  "\u001b_G\u001b\\",
  ..."\0,\u007f,\u0085,\u202e,\u2066,\u2069,\u200e,\u200f,\u061c,2J,[,m,;,text,`,|,*,漢字,👨‍👩‍👧,e\u0301".split(
    ","
  ),
  "\n",
  "\t"
]

/** Texts that try to reach the terminal, as answers, as arguments and outputs of calls, and as errors. */
export const hostile = (entry: string, count: number, seed: number) =>
  Effect.gen(function* () {
    const random = new Random(seed)
    const text = () => random.some(12, () => random.pick("", ...pieces)).join("")
    const { model, open, put } = yield* Home.make({ entry })
    const started = yield* open(["--yes"])
    const { terminal } = started
    const each = 50
    let sent = 0
    for (let n = 1; sent < count; n++) {
      const texts = Array.from({ length: Math.min(each, count - sent) }, text)
      sent += texts.length
      const mark = terminal.bytes().length
      yield* terminal.type(`prompt ${n}\r`)
      const request = yield* model.next
      const end = `The end of ${n}.`
      if (n % 4 === 0) {
        put("hostile.txt", texts.join("\n"))
        // A name of a file, an output of a command, and a tool that is not there.
        yield* request.calls(
          ["shell", { command: `cat hostile.txt; # ${texts[0]}` }],
          ["read", { path: `x${texts[1]}` }],
          [`tool${random.upTo(9)}`, { text: texts[2] }]
        )
        yield* (yield* model.next).says(end)
      } else if (n % 4 === 1) yield* request.fails(403, `${texts.join(" ")} ${end}`)
      else {
        const chars = Array.from(`${texts.join(n % 4 === 2 ? "\n\n" : " ")}\n\n\`\`\`\n\`\`\`\n\n${end}`)
        while (chars.length > 0) yield* request.delta(chars.splice(0, 1 + random.upTo(20)).join(""))
        yield* request.ends
      }
      const advice = () => terminal.bytes().slice(mark).includes("/retry sends it again")
      yield* n % 4 === 1 ? terminal.until("the failure", advice, Home.patience) : Home.answered(started, end)
    }
    const foreign = Sequences.foreign(terminal.bytes())
    if (foreign.length > 0) yield* Effect.logWarning(foreign.slice(0, 5).join("\n"))
    const figures: Figures = { foreign: foreign.length, texts: sent }
    return figures
  }).pipe(Effect.scoped)
