import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Schema } from "effect"
import { execFileSync } from "node:child_process"
import { symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Attachments from "../../src/cli/agent/Attachments.ts"
import * as Settings from "../../src/cli/settings/Settings.ts"

describe("the JSON Schema of the configuration", () => {
  // `npm test -- --run -u test/cli/Configuration.test.ts` writes it anew.
  it("is published as the program reads it", async () => {
    const { definitions, schema } = Schema.toJsonSchemaDocument(Settings.ConfigurationFile, {
      onExcessProperty: "error"
    })
    const published = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      ...schema,
      ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
    }
    await expect(`${JSON.stringify(published, undefined, 2)}\n`).toMatchFileSnapshot(
      join(import.meta.dirname, "../../config.schema.json")
    )
  })
})

describe("the file of a project", () => {
  const loaded = (make: (file: string, outside: string) => void) =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.makeTempDirectoryScoped()
      yield* fs.makeDirectory(join(base, "project", ".git"), { recursive: true })
      yield* fs.makeDirectory(join(base, "project", ".effect-agent"))
      yield* fs.makeDirectory(join(base, "project", "inner"))
      yield* fs.writeFileString(join(base, "key"), "SECRET")
      make(join(base, "project", ".effect-agent", "config.json"), join(base, "key"))
      return yield* Settings.configurationOf({ HOME: base }, join(base, "project", "inner")).pipe(
        Effect.timeout("5 seconds"),
        Effect.result
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

  it.live.each([
    ["a link to a device", (file: string) => symlinkSync("/dev/zero", file), "it is no file within"],
    [
      "a link out of the project",
      (file: string, outside: string) => symlinkSync(outside, file),
      "it is no file within"
    ],
    ["a pipe", (file: string) => void execFileSync("mkfifo", [file]), "it is no file within"],
    [
      "a huge file",
      (file: string) => (writeFileSync(file, "{"), truncateSync(file, 2 ** 33)),
      "at most 262144"
    ]
  ] as const)("is refused if it is %s, before it is read", ([, make, expected]) =>
    Effect.gen(function* () {
      const result = yield* loaded(make)
      assert.isTrue(result._tag === "Failure")
      if (result._tag === "Failure") {
        assert.include(result.failure.message, expected)
        assert.notInclude(result.failure.message, "SECRET")
      }
    })
  )

  it.live("may be a link within the repository", () =>
    Effect.gen(function* () {
      const result = yield* loaded((file) => {
        writeFileSync(join(file, "../../shared.json"), '{ "maxTurns": 3 }')
        symlinkSync("../shared.json", file)
      })
      assert.strictEqual(result._tag === "Success" && result.success.project?.members["maxTurns"], 3)
    })
  )
})

describe("a file of a prompt", () => {
  it.live("may be no link out of the project, and be outside by its path", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const base = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
      yield* fs.makeDirectory(join(base, "project", ".git"), { recursive: true })
      yield* fs.writeFileString(join(base, "key"), "SECRET")
      yield* fs.writeFileString(join(base, "project", "NOTES.md"), "notes")
      symlinkSync("../key", join(base, "project", "README.md"))
      symlinkSync("NOTES.md", join(base, "project", "LINK.md"))
      const read = (words: string, file: ReadonlyArray<string> = []) =>
        Attachments.read(words, { cwd: join(base, "project"), file })
      for (const refused of [read("@README.md"), read("", [join(base, "project", "README.md")])])
        assert.include((yield* Effect.flip(refused)).message, `to send ${base}/key, give that path`)
      assert.strictEqual((yield* read("@LINK.md @../key")).files.length, 2)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
