import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Message } from "effect-agent"
import { SessionEntry, type SessionStore } from "effect-agent/sessions"
import { readFileSync, writeFileSync } from "node:fs"
import { Random } from "../../harness/chaos/Random.ts"
import { fileIn, folder, storeIn } from "./folders.ts"
import { exchange, said } from "./records.ts"

/** A session of some exchanges, with a branch, and the lines of its file. */
const written = (store: SessionStore.Service, directory: string) =>
  Effect.gen(function* () {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const session = yield* store.create({ sessionId: "s1" })
        yield* session.record(exchange("r1", "Grüße, 世界 🌍"))
        yield* session.record(exchange("r2", "two"))
        const { messages } = yield* session.rewind((yield* store.read("s1")).view.messages[5]?.id ?? "")
        assert.strictEqual(messages.length, 6)
        yield* session.record(exchange("r3", "three"))
      })
    )
    const bytes = readFileSync(fileIn(directory))
    const lines = bytes.toString("utf8").trimEnd().split("\n")
    return { bytes, lines, entries: lines.map((line) => JSON.parse(line)) }
  })

const textsOf = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => `${message.role} ${Message.textOf(message)}`)

describe("a file that is cut", () => {
  it.live(
    "at any byte of its last three lines keeps every whole line, and continues on a line of its own",
    () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const store = yield* storeIn(directory)
        const { bytes, entries, lines } = yield* written(store, directory)
        const path = fileIn(directory)
        const start = Buffer.byteLength(lines.slice(0, -3).join("\n")) + 1
        for (let length = start; length <= bytes.length; length++) {
          const cut = bytes.subarray(0, length)
          writeFileSync(path, cut)
          const ends = cut.toString("latin1").split("\n").length - 1
          // A line is whole without its line feed too.
          const isWhole = length === bytes.length || bytes[length] === 0x0a
          const kept = entries.slice(0, isWhole && length < bytes.length ? ends + 1 : ends)
          const isTorn = !isWhole && bytes[length - 1] !== 0x0a
          const next = Message.user("next")
          const before = yield* Effect.scoped(
            Effect.tap(store.open("s1"), (session) => session.record([said(next)]))
          )
          assert.strictEqual(before.damage.length, isTorn ? 1 : 0, `cut at ${length}`)
          const after = yield* store.read("s1")
          assert.deepStrictEqual(
            after.entries.map(({ id }) => id),
            [...kept.map(({ id }) => id), next.id],
            `cut at ${length}`
          )
          assert.deepStrictEqual(textsOf(after.view.messages), [
            ...textsOf(before.restored.messages),
            "user next"
          ])
          assert.strictEqual(after.damage.length, before.damage.length)
          assert.isTrue(readFileSync(path).subarray(0, length).equals(cut), "changed bytes")
        }
      }).pipe(Effect.scoped),
    120_000
  )
})

describe("a file with a broken line", () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31))

  it.live(
    `keeps every other line in its place, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const store = yield* storeIn(directory)
        const { bytes, entries, lines } = yield* written(store, directory)
        const path = fileIn(directory)
        const { view } = yield* store.read("s1")
        for (let round = 0; round < 1_000; round++) {
          const at = new Random(seed + round).upTo(lines.length - 1)
          const broken = corrupted(Buffer.from(lines[at] ?? ""), new Random(seed * 31 + round))
          const text = Buffer.concat(
            lines.flatMap((line, index) => [index === at ? broken : Buffer.from(line), Buffer.from("\n")])
          )
          writeFileSync(path, text)
          const read = yield* store.read("s1")
          const note = `round ${round}, seed ${seed}, line ${at + 1}: ${broken.toString("latin1")}`
          const ids = new Set(read.entries.map(({ id }) => id))
          for (const [index, entry] of entries.entries())
            if (index !== at) assert.isTrue(ids.has(entry.id), note)
          // Another line feed may make two lines of one, and a change within a text makes another entry.
          const entry = Result.getOrUndefined(SessionEntry.decode(broken.toString("utf8")))
          // An empty line is no damage: nothing of the entry is left that could tell.
          if (entry === undefined && broken.length > 0) assert.isAbove(read.damage.length, 0, note)
          // A changed bit can name another entry as the parent, which starts a branch there.
          const isMoved = entry !== undefined && entry.parentId !== entries[at]?.parentId
          // A branch that was rewound may lose its place with the entry that said so.
          const lost = new Set([entries[at]?.message?.id])
          if (entries[at]?.type !== "leaf" && !isMoved) {
            const left = new Set(read.view.messages.map(({ id }) => id))
            for (const { id } of view.messages) assert.isTrue(lost.has(id) || left.has(id), note)
          }
          assert.isTrue(readFileSync(path).equals(text), note)
        }
        writeFileSync(path, bytes)
      }).pipe(Effect.scoped),
    120_000
  )
})

/** A line with one fault. */
const corrupted = (line: Buffer, random: Random): Buffer => {
  const at = random.upTo(line.length - 1)
  const length = 1 + random.upTo(20)
  const noise = Buffer.from(Array.from({ length }, () => random.upTo(255)))
  const [before, after] = [line.subarray(0, at), line.subarray(at)]
  return random.pick(
    () => Buffer.concat([before, noise, after.subarray(length)]),
    () => Buffer.concat([before, after.subarray(length)]),
    () => Buffer.concat([before, noise, after]),
    () => Buffer.concat([before, Buffer.from([(line[at] ?? 0) ^ (1 << random.upTo(7))]), after.subarray(1)]),
    () => before,
    () => after,
    () => Buffer.alloc(line.length),
    () => Buffer.concat([before, Buffer.from("\n"), after]),
    () => Buffer.from("[".repeat(100_000)),
    () => Buffer.from("{}"),
    () => Buffer.concat([line, line])
  )()
}
