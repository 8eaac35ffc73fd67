import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Path, Result, Stream } from "effect"
import { Message } from "effect-agent"
import { SessionEntry, SessionHome } from "effect-agent/sessions"
import { globSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { upgrade } from "../../src/sessions/SessionEntry.ts"
import { fileIn, folder, storeIn } from "./folders.ts"
import { said } from "./records.ts"

const versions = join(import.meta.dirname, "versions")

describe("each version of the entries", () => {
  it("has a file here", () => {
    const files = globSync("*.jsonl", { cwd: versions }).sort()
    assert.deepStrictEqual(
      files,
      Array.from({ length: SessionEntry.version }, (_, index) => `${index + 1}.jsonl`)
    )
  })

  for (const file of globSync("*.jsonl", { cwd: versions })) {
    it.live(`is read: ${file}`, () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const store = yield* storeIn(directory)
        const lines = readFileSync(join(versions, file), "utf8")
        writeFileSync(join(directory, "2026-11-22T22-57-00-000Z_s1.jsonl"), lines)
        const { damage, entries, labels, session, view } = yield* store.read("s1")
        assert.deepStrictEqual(damage, [])
        assert.strictEqual(entries.length, 16)
        assert.strictEqual(session.title, "Clock")
        assert.strictEqual(session.created, Date.UTC(2026, 10, 22, 22, 57))
        assert.deepStrictEqual([...labels], [["m1", "start"]])
        assert.deepStrictEqual(
          view.messages.map(({ id }) => id),
          ["m1", "m2"]
        )
        assert.deepStrictEqual(view.options, { model: "gpt-5-mini", toolConcurrency: 2 })
        assert.deepStrictEqual(
          view.queues.steering.map(({ id }) => id),
          ["m3"]
        )
        assert.deepStrictEqual(view.compaction, { summary: "Time.", firstKept: "m2", madeAfter: "m2" })
        assert.strictEqual(view.lostRun, "r1")
        // What another version wrote stays as it is.
        const text = yield* Stream.mkString(store.export("s1", "jsonl"))
        for (const part of ['"mood":"good"', '"of a newer version"', '"later":true'])
          assert.include(text, part)
      }).pipe(Effect.scoped)
    )
  }

  it("is made of the one before by its migration", () => {
    const table = {
      1: (entry: { readonly [key: string]: unknown }) => ({ ...entry, v: 2, one: true }),
      2: (entry: { readonly [key: string]: unknown }) => ({ ...entry, v: 3, two: true })
    }
    assert.deepStrictEqual(upgrade({ v: 1, id: "a" }, table), { v: 3, id: "a", one: true, two: true })
    assert.deepStrictEqual(upgrade({ v: 3, id: "a" }, table), { v: 3, id: "a" })
  })
})

describe("an entry", () => {
  const base = { v: 1, id: "b", parentId: "a", timestamp: 1 } as const

  it("is one line, with the members that all have first", () => {
    const message = Message.user("a\nb\u2028")
    const line = SessionEntry.encode({ ...base, type: "message", message })
    assert.isTrue(line.startsWith('{"v":1,"type":"message","id":"b","parentId":"a","timestamp":1,"message":'))
    assert.notInclude(line, "\n")
    assert.deepStrictEqual(Result.getOrThrow(SessionEntry.decode(line)), {
      ...base,
      type: "message",
      message
    })
  })

  it("is none without an id, a place or the members of its type", () => {
    for (const line of [
      "",
      "null",
      "[]",
      "{}",
      JSON.stringify({ ...base, type: "label" }),
      JSON.stringify({ ...base, id: 1, type: "mood" }),
      JSON.stringify({ ...base, parentId: undefined, type: "mood" }),
      JSON.stringify({ ...base, type: "message", message: { role: "user" } })
    ]) {
      assert.isTrue(Result.isFailure(SessionEntry.decode(line)), line)
    }
  })
})

describe("a file of a session", () => {
  it.live("is named by its time and id, and belongs to its user alone", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const store = yield* storeIn(join(directory, "new"))
      yield* store.create({ sessionId: "s1" })
      const [file = ""] = globSync("new/*.jsonl", { cwd: directory })
      assert.match(file, /^new\/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_s1\.jsonl$/)
      assert.strictEqual(statSync(join(directory, file)).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(directory, "new")).mode & 0o777, 0o700)
    }).pipe(Effect.scoped)
  )

  it.live("may have empty lines and line feeds of Windows, and no line feed at its end", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const store = yield* storeIn(directory)
      const message = Message.user("Hi")
      yield* Effect.scoped(
        Effect.flatMap(store.create({ sessionId: "s1" }), (session) => session.record([said(message)]))
      )
      const path = fileIn(directory)
      writeFileSync(path, readFileSync(path, "utf8").trimEnd().replaceAll("\n", "\r\n\n"))
      const { damage, restored } = yield* store.open("s1")
      assert.deepStrictEqual(damage, [])
      assert.deepStrictEqual(restored.messages, [message])
    }).pipe(Effect.scoped)
  )

  it.live("may have ids that repeat, and entries that name each other or none", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const store = yield* storeIn(directory)
      const line = (id: string, parentId: string, text: string) =>
        SessionEntry.encode({
          v: 1,
          type: "message",
          id,
          parentId,
          timestamp: 1,
          message: Message.user(text)
        })
      const lines = [
        line("a", "b", "1"),
        line("b", "a", "2"),
        line("b", "b", "3"),
        line("c", "lost", "4"),
        line("d", "d", "5")
      ]
      writeFileSync(join(directory, "2026-11-22T22-57-00-000Z_s1.jsonl"), `${lines.join("\n")}\n`)
      const { damage, view } = yield* store.read("s1")
      assert.deepStrictEqual(view.messages.map(Message.textOf), ["1", "2", "3", "4", "5"])
      assert.deepStrictEqual(
        damage.map(({ line }) => line),
        [1, 3, 4, 5]
      )
    }).pipe(Effect.scoped)
  )

  it.live("stands in a folder for its working directory", () =>
    Effect.gen(function* () {
      const name = yield* SessionHome.folderOf("/home/ada/Größe (1)")
      assert.match(name, /^-home-ada-Gr--e--1--[0-9a-f]{8}$/)
      const home = (environment: Readonly<Record<string, string>>) =>
        Effect.flatMap(Effect.void, () => SessionHome.home).pipe(
          Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(environment))
        )
      assert.strictEqual(yield* home({ EFFECT_AGENT_HOME: "/e", XDG_DATA_HOME: "/x", HOME: "/h" }), "/e")
      assert.strictEqual(yield* home({ XDG_DATA_HOME: "/x", HOME: "/h" }), "/x/effect-agent")
      assert.strictEqual(yield* home({ XDG_DATA_HOME: "x", HOME: "/h" }), "/h/.local/share/effect-agent")
    }).pipe(Effect.provide([Path.layer, NodeServices.layer]))
  )
})
